import os

# Workers share the cores: threads of linear algebra would spin while they wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
