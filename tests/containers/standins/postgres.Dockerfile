# Stands for PostgreSQL 17: its user, folders, port, variables and first start.
FROM hushcount-standin-python:3.13
RUN groupadd --gid 999 postgres \
    && useradd --uid 999 --gid postgres --home-dir /var/lib/postgresql --shell /bin/bash postgres \
    && apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends postgresql-common gosu libnss-wrapper \
    && sed -i 's/^#\?create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf \
    && apt-get install -y -qq --no-install-recommends postgresql-17 \
    && rm -rf /var/lib/apt/lists/* \
    && mkdir -p /docker-entrypoint-initdb.d /var/lib/postgresql/data \
    && install --directory --owner=postgres --group=postgres --mode=3777 /var/run/postgresql \
    && chown -R postgres:postgres /var/lib/postgresql \
    && sed -i "s/^#\?listen_addresses.*/listen_addresses = '*'/" /usr/share/postgresql/17/postgresql.conf.sample
COPY --chmod=0555 postgres-entrypoint.sh /usr/local/bin/docker-entrypoint.sh
ENV PATH=/usr/lib/postgresql/17/bin:$PATH \
    PGDATA=/var/lib/postgresql/data \
    LANG=C.UTF-8
VOLUME /var/lib/postgresql/data
STOPSIGNAL SIGINT
EXPOSE 5432
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
