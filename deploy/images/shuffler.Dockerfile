# The shuffler: its collector, its schedule and its job. No code that opens a report is in it, and no key.
#
#     docker build -f deploy/images/shuffler.Dockerfile -t hushcount-shuffler:0.1.0 .
#     docker build -f deploy/images/shuffler.Dockerfile --target signing -t hushcount-shuffler-signing:0.1.0 .
#
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

FROM ${BASE} AS party
COPY --from=dependencies /opt/venv /opt/venv
# The party's packages by name, and the client's: what is not named here is in no layer.
COPY hushcount /opt/hushcount/hushcount
COPY service /opt/hushcount/service
COPY shuffler /opt/hushcount/shuffler
COPY evaluator /opt/hushcount/evaluator
COPY pipelines /opt/hushcount/pipelines
COPY deploy/hand_on.py /opt/hushcount/hand_on.py
COPY deploy/images/shuffler.py /opt/hushcount/shuffler_command.py
# Nothing is written but below /tmp and the volumes: the root file system can be read-only.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/opt/hushcount \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    NUMBA_CACHE_DIR=/tmp/numba
WORKDIR /var/lib/hushcount
USER 10001:10001
ENTRYPOINT ["python", "-m", "shuffler_command"]

# What the schedule of a shuffler runs in: it signs what it hands on, by a private key that is mounted or in a variable.
FROM party AS signing
COPY keys /opt/hushcount/keys

FROM party AS shuffler
