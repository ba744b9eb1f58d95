# A library that tells a program another time than the machine's: on_faults.py lays it over containers.
ARG BASE=hushcount-standin-python:3.13
FROM ${BASE}
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends libfaketime \
    && cp /usr/lib/*/faketime/libfaketime.so.1 /libfaketime.so.1 \
    && rm -rf /var/lib/apt/lists/*
