# Stands for moto's server, which answers as S3 does.
FROM hushcount-standin-python:3.13
ARG MOTO
RUN python -m venv /opt/moto \
    && /opt/moto/bin/pip install --no-cache-dir --disable-pip-version-check --quiet "moto[s3,server]==${MOTO}"
EXPOSE 5000
ENTRYPOINT ["/opt/moto/bin/moto_server", "-H", "0.0.0.0"]
