# The analyzer: opens, tallies, estimates, and reveals what discovery released. No key is in it: the job finds it where
# --keys says. The other parties' folders are in it because hushcount run composes all jobs.
#
#     docker build -f deploy/images/analyzer.Dockerfile -t hushcount-analyzer:0.1.0 .
# `make image-bases` looks up what the digest of the tag is today.
ARG BASE=python:3.13.14-slim-bookworm@sha256:9d7f287598e1a5a978c015ee176d8216435aaf335ed69ac3c38dd1bbb10e8d64

FROM ${BASE} AS dependencies
# CLOUD=gcp adds what gs://, Dataflow and Google's key services need: gcp.lock. CLOUD=aws, s3:// and AWS KMS: aws.lock.
ARG CLOUD=
COPY requirements.lock deploy/images/*.lock /locks/
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --only-binary :all: \
       -r /locks/requirements.lock ${CLOUD:+-r /locks/${CLOUD}.lock} \
    && /opt/venv/bin/pip uninstall --yes --quiet pip

FROM ${BASE}
COPY --from=dependencies /opt/venv /opt/venv
# The party's packages by name, and the client's: what is not named here is in no layer.
COPY hushcount /opt/hushcount/hushcount
COPY keys /opt/hushcount/keys
COPY service /opt/hushcount/service
COPY shuffler /opt/hushcount/shuffler
COPY evaluator /opt/hushcount/evaluator
COPY analyzer /opt/hushcount/analyzer
COPY aux_server /opt/hushcount/aux_server
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
