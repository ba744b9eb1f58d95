# Stands for the image of Python that has compilers' tools: `strip` is what recipes use of it.
FROM hushcount-standin-python:3.13
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends binutils \
    && rm -rf /var/lib/apt/lists/*
