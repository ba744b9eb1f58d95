# Stands for Flink 1.19 on Java 17: Flink's own scripts, settings and jars as the package index has them, in the places and
# for the user of the published image. The version is that of deploy/flink/fetch.py.
FROM hushcount-standin-python:3.13 AS distribution
ARG FLINK=1.19.3
# The scripts are in the wheel of PyFlink, of any platform; the jars in the source archive of its libraries.
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip download --quiet --no-deps --only-binary :all: --python-version 3.11 \
       --platform manylinux2014_x86_64 --dest /fetched "apache-flink==${FLINK}" \
    && /opt/venv/bin/pip download --quiet --no-deps --no-binary :all: --dest /fetched "apache-flink-libraries==${FLINK}" \
    && mkdir -p /flink/log \
    && tar -xzf /fetched/*.tar.gz -C /flink --strip-components=2 --wildcards '*/deps/*' \
    && python -m zipfile -e /fetched/*.whl /scripts \
    && cp -r /scripts/pyflink/bin /scripts/pyflink/conf /flink \
    && chmod +x /flink/bin/*

FROM hushcount-standin-java:17
RUN groupadd --system --gid 9999 flink \
    && useradd --system --home-dir /opt/flink --uid 9999 --gid flink flink
ENV FLINK_HOME=/opt/flink \
    PATH=/opt/flink/bin:$PATH
COPY --from=distribution --chown=flink:flink /flink /opt/flink
COPY --chmod=0555 flink-entrypoint.sh /docker-entrypoint.sh
WORKDIR /opt/flink
EXPOSE 6123 8081
ENTRYPOINT ["/docker-entrypoint.sh"]
