# Stands for VersityGW: its own program, which Go installed in the context, and wget.
FROM hushcount-standin-python:3.13
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends wget \
    && rm -rf /var/lib/apt/lists/*
COPY versitygw /usr/local/bin/versitygw
EXPOSE 7070
ENTRYPOINT ["versitygw"]
