#!/bin/sh
# Take out of an environment what no party loads: slim.sh ENVIRONMENT. deploy/README.md says what is left.
set -eu
cd "$1"/lib/python3*/site-packages
# Beam requires it for pictures, and imports it in examples only.
"$1/bin/pip" uninstall --yes --quiet pillow
# Tests, what extensions were compiled from, and symbols for debuggers.
find . -depth -type d \( -name tests -o -name test \) -exec rm -rf {} +
find apache_beam -type f -name '*_test.py' -delete
find . -type f \( -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.pyi' \
    -o -name '*.h' -o -name '*.hpp' -o -name '*.c' -o -name '*.cc' -o -name '*.cpp' \) -delete
# What wheels bundle in NAME.libs was rewritten, and binutils before 2.41 break it.
find . -type f \( -name '*.so' -o -name '*.so.*' \) -not -path './*.libs/*' -exec strip --strip-unneeded {} +
# Arrow's remote calls.
rm -rf pyarrow/include pyarrow/src
rm -f pyarrow/*flight*
# The bytecode of what each start loads, and no more: a start without it takes 3 s of CPU longer.
"$1/bin/python" -c 'import apache_beam, pyarrow.parquet, uvloop
from apache_beam.runners.portability import fn_api_runner, local_job_service, portable_runner
from apache_beam.runners.worker import sdk_worker_main, worker_pool_main'
"$1/bin/python" -m compileall -q annotated_doc annotated_types click httptools nacl numpy prometheus_client pydantic \
    pydantic_core rich shellingham typer typing_inspection uvicorn
