# Stands for Beam's image of Python workers: its `boot`, which Go built from Beam's own source in the context.
FROM hushcount-standin-python:3.13
COPY container /opt/apache/beam/boot
