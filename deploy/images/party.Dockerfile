# The parties' images. Each holds its party's packages by name, and no key:
#
#     docker build -f deploy/images/party.Dockerfile --target shuffler -t hushcount-shuffler:0.1.0 .
#
# Targets: shuffler, shuffler-signing, evaluator, aux-server, analyzer. EXTRAS="aws postgres gcp telemetry" adds what the
# locks of these names hold. `make image-bases` looks up what the digests of the tags are today.
ARG BASE=python:3.13.14-slim-bookworm@sha256:9d7f287598e1a5a978c015ee176d8216435aaf335ed69ac3c38dd1bbb10e8d64
ARG BUILDER=python:3.13.14-bookworm

FROM ${BUILDER} AS dependencies
ARG EXTRAS=
COPY requirements.lock deploy/images/*.lock /locks/
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --only-binary :all: \
       -r /locks/requirements.lock $(for extra in ${EXTRAS}; do echo "-r /locks/${extra}.lock"; done) \
    && /opt/venv/bin/pip uninstall --yes --quiet pip

FROM ${BASE} AS party
COPY --from=dependencies /opt/venv /opt/venv
COPY hushcount /opt/hushcount/hushcount
COPY service /opt/hushcount/service
COPY evaluator /opt/hushcount/evaluator
COPY pipelines /opt/hushcount/pipelines
# Nothing is written but below /tmp and the volumes: the root file system can be read-only.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/opt/hushcount \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    NUMBA_CACHE_DIR=/tmp/numba
WORKDIR /var/lib/hushcount
USER 10001:10001
ENTRYPOINT ["python", "-m", "pipelines"]

# Its collector, its job and what hands on: no code that opens a report.
FROM party AS shuffler
COPY shuffler /opt/hushcount/shuffler
COPY deploy/hand_on.py /opt/hushcount/hand_on.py
COPY deploy/images/shuffler.py /opt/hushcount/shuffler_command.py
ENTRYPOINT ["python", "-m", "shuffler_command"]

# What the shuffler's schedule runs in: it signs what it hands on, by a private key that is mounted or in a variable.
FROM shuffler AS shuffler-signing
COPY keys /opt/hushcount/keys

FROM party AS evaluator
COPY keys /opt/hushcount/keys

# `hushcount run` composes all jobs, so these two hold the other parties' code, and nobody's key.
FROM party AS analyzer
COPY keys /opt/hushcount/keys
COPY shuffler /opt/hushcount/shuffler
COPY analyzer /opt/hushcount/analyzer
COPY aux_server /opt/hushcount/aux_server

FROM analyzer AS aux-server
COPY deploy/hand_on.py /opt/hushcount/hand_on.py
