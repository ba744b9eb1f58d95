#!/bin/bash
# The published image's first start, as far as tests need it: POSTGRES_PASSWORD, _USER and _DB or files that hold them
# (POSTGRES_PASSWORD_FILE), /docker-entrypoint-initdb.d, and the step from root to the user postgres.
set -euo pipefail
from() { local file=$1_FILE; if [ -n "${!file:-}" ]; then cat "${!file}"; else echo "${!1:-}"; fi; }

if [ "${1#-}" != "$1" ]; then set -- postgres "$@"; fi
if [ "$1" = postgres ] && [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA"
    chmod 0700 "$PGDATA"
    find "$PGDATA" /var/run/postgresql \! -user postgres -exec chown postgres '{}' +
    exec gosu postgres "$0" "$@"
fi
if [ "$1" = postgres ] && ! getent passwd "$(id -u)" > /dev/null; then
    # The published image does the same for a user without a name.
    NSS_WRAPPER_PASSWD=$(mktemp) NSS_WRAPPER_GROUP=$(mktemp)
    echo "postgres:x:$(id -u):$(id -g):PostgreSQL:$PGDATA:/bin/false" > "$NSS_WRAPPER_PASSWD"
    echo "postgres:x:$(id -g):" > "$NSS_WRAPPER_GROUP"
    export LD_PRELOAD=libnss_wrapper.so NSS_WRAPPER_PASSWD NSS_WRAPPER_GROUP
fi
if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
    password=$(from POSTGRES_PASSWORD)
    user=$(from POSTGRES_USER)
    user=${user:-postgres}
    database=$(from POSTGRES_DB)
    database=${database:-$user}
    [ -n "$password" ] || { echo "Error: Database is uninitialized and superuser password is not specified." >&2; exit 1; }
    initdb --username="$user" --pwfile=<(echo "$password") --auth-local=trust --auth-host=scram-sha-256 > /dev/null
    echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
    # Over the socket only, until all is there.
    pg_ctl --silent --wait --options="-c listen_addresses=''" start
    export PGUSER=$user
    [ "$database" = postgres ] || createdb "$database"
    for file in /docker-entrypoint-initdb.d/*; do
        case "$file" in
            *.sh) if [ -x "$file" ]; then "$file"; else . "$file"; fi ;;
            *.sql) psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 --dbname="$database" --file="$file" ;;
        esac
    done
    pg_ctl --silent --wait --mode=fast stop
fi
exec "$@"
