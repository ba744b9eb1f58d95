"""What makes the vectors, one subject a module: `data()` returns the content of the file that `make.py` writes."""
