# Stands for Maven 3 on Java 17.
FROM hushcount-standin-java:17
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends maven \
    && rm -rf /var/lib/apt/lists/*
