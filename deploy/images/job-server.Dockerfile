# Beam's job server for Flink: it takes jobs from the commands and hands them to the cluster. It has no Hushcount code.
#
#     docker build -f deploy/images/job-server.Dockerfile -t hushcount-job-server:0.1.0 .
#
# The tags are exact, but their digests are not pinned. `make image-bases` looks them up, and --build-arg pins them.
ARG MAVEN=maven:3.9.9-eclipse-temurin-17
ARG JAVA=eclipse-temurin:17.0.13_11-jre

# hadolint ignore=DL3006
FROM ${MAVEN} AS jars
COPY deploy/flink/pom.xml /build/pom.xml
# The plugin has the same version as in deploy/flink/fetch.py.
RUN mvn --quiet --batch-mode --file /build/pom.xml \
    org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
    -DoutputDirectory=/build/lib -DincludeScope=runtime

# hadolint ignore=DL3006
FROM ${JAVA}
COPY --from=jars /build/lib /opt/job-server/lib
USER 10001:10001
EXPOSE 8097 8098 8099
# Flink's serialisers read private fields of these packages, which Java 17 forbids by default; fetch.py opens the same.
ENTRYPOINT ["java", "-XX:MaxRAMPercentage=70", \
            "--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED", \
            "--add-opens=java.base/java.net=ALL-UNNAMED", "--add-opens=java.base/java.io=ALL-UNNAMED", \
            "--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/java.text=ALL-UNNAMED", \
            "--add-opens=java.base/java.time=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED", \
            "-cp", "/opt/job-server/lib/*", "org.apache.beam.runners.flink.FlinkJobServerDriver"]
CMD ["--help"]
