# Python workers for Flink: a pool beside each TaskManager. PARTY is the image of the party that runs the job.
#
#     docker build -f deploy/images/flink-worker.Dockerfile --build-arg PARTY=hushcount-analyzer:0.1.0 \
#            -t hushcount-analyzer-worker:0.1.0 .
ARG PARTY
# hadolint ignore=DL3006
FROM ${PARTY}
COPY --chmod=0555 deploy/flink/worker.py /opt/hushcount/worker.py
USER 10001:10001
EXPOSE 50000
ENTRYPOINT ["python", "-m", "apache_beam.runners.worker.worker_pool_main", "--service_port=50000", \
            "--container_executable=/opt/hushcount/worker.py"]
