# The parties' images. Each holds its party's packages by name, and no key:
#
#     docker build -f deploy/images/party.Dockerfile --target shuffler -t hushcount-shuffler:0.1.0 .
#
# Targets: shuffler, shuffler-signing, evaluator, issuer, aux-server, analyzer. EXTRAS="aws gcp telemetry" adds the packages in the
# lock files of these names. BUILDER has `strip`, and Python at the same path as BASE. `make image-bases` looks up the
# current digests of the tags; the digest of BUILDER is not pinned.
ARG BASE=python:3.13.14-slim-bookworm@sha256:9d7f287598e1a5a978c015ee176d8216435aaf335ed69ac3c38dd1bbb10e8d64
ARG BUILDER=python:3.13.14-bookworm

FROM ${BUILDER} AS packages
ARG EXTRAS=
COPY requirements.lock deploy/images/*.lock /locks/
RUN python -m venv /opt/venv \
    && for extra in ${EXTRAS}; do echo "-r /locks/${extra}.lock"; done > /locks/extras \
    && /opt/venv/bin/pip install --no-cache-dir --no-compile --disable-pip-version-check --require-hashes \
       --no-deps --only-binary :all: -r /locks/requirements.lock -r /locks/extras \
    && /opt/venv/bin/pip --disable-pip-version-check check
COPY deploy/images/slim.sh /locks/
RUN sh /locks/slim.sh /opt/venv

# For parties that open reports: they compile loops and the lanes, compute errors, and account for privacy with scipy.
FROM packages AS opening
RUN /opt/venv/bin/python -c "import llvmlite.ir, numba, scipy.stats" \
    && /opt/venv/bin/pip uninstall --yes --quiet pip

# For parties that only pass reports on: they need none of these packages.
FROM packages AS passing
RUN /opt/venv/bin/pip uninstall --yes --quiet llvmlite numba scipy \
    && /opt/venv/bin/pip uninstall --yes --quiet pip

# What only the party that signs passes needs.
FROM ${BUILDER} AS issuing
COPY deploy/images/issuer.lock /locks/
RUN python -m venv /opt/installer \
    && /opt/installer/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes \
       --no-deps --only-binary :all: --target /opt/issuing -r /locks/issuer.lock \
    && PYTHONPATH=/opt/issuing /opt/installer/bin/pip --disable-pip-version-check check

FROM ${BASE} AS base
# Files are written only below /tmp and the volumes, so the root file system can be read-only.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/opt/hushcount \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    NUMBA_CACHE_DIR=/tmp/numba \
    HUSHCOUNT_CONFIG=/etc/hushcount/deployment.toml \
    HUSHCOUNT_PROGRAM=pipelines
# The commands that the program tells people to type work in its container: `docker compose exec PARTY hushcount status`.
COPY --chmod=755 deploy/images/hushcount.sh /usr/local/bin/hushcount
WORKDIR /var/lib/hushcount

FROM base AS party
COPY --from=passing /opt/venv /opt/venv
COPY hushcount /opt/hushcount/hushcount
COPY service /opt/hushcount/service
COPY shuffler /opt/hushcount/shuffler
# The reader of deployment files needs the settings of evaluator and issuer; without `keys` this code makes no
# evaluations and signs no passes.
COPY evaluator /opt/hushcount/evaluator
COPY issuer /opt/hushcount/issuer
COPY pipelines /opt/hushcount/pipelines
RUN python -m compileall -q /opt/hushcount
USER 10001:10001

# The shuffler's collector, its job, and the program that hands on: no code that opens a report.
FROM party AS shuffler
COPY deploy/hand_on.py /opt/hushcount/hand_on.py
COPY deploy/images/shuffler.py /opt/hushcount/shuffler_command.py
ENV HUSHCOUNT_PROGRAM=shuffler_command
ENTRYPOINT ["hushcount"]

# For the shuffler's schedule, which signs outputs with a private key from a mount or an environment variable.
FROM shuffler AS shuffler-signing
COPY keys /opt/hushcount/keys

FROM party AS evaluator
COPY keys /opt/hushcount/keys
COPY deploy/images/evaluator.py /opt/hushcount/evaluator_command.py
ENV HUSHCOUNT_PROGRAM=evaluator_command
ENTRYPOINT ["hushcount"]

FROM party AS issuer
COPY --from=issuing /opt/issuing /opt/issuing
COPY keys /opt/hushcount/keys
COPY deploy/images/issuer.py /opt/hushcount/issuer_command.py
ENV PYTHONPATH=/opt/hushcount:/opt/issuing \
    HUSHCOUNT_PROGRAM=issuer_command
ENTRYPOINT ["hushcount"]

# `hushcount run` composes all jobs, so these two images have the other parties' code; no image has a key.
FROM base AS analyzer
COPY --from=opening /opt/venv /opt/venv
COPY hushcount /opt/hushcount/hushcount
COPY sealed_lanes /opt/hushcount/sealed_lanes
COPY keys /opt/hushcount/keys
COPY service /opt/hushcount/service
COPY shuffler /opt/hushcount/shuffler
COPY evaluator /opt/hushcount/evaluator
COPY issuer /opt/hushcount/issuer
COPY analyzer /opt/hushcount/analyzer
COPY aux_server /opt/hushcount/aux_server
COPY pipelines /opt/hushcount/pipelines
RUN python -m compileall -q /opt/hushcount
USER 10001:10001
ENTRYPOINT ["hushcount"]

FROM analyzer AS aux-server
COPY deploy/hand_on.py /opt/hushcount/hand_on.py
