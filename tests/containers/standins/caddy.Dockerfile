# Stands for Caddy 2. As in the published image the program may bind low ports by a capability of its file, so it does not
# start where that capability is dropped.
FROM hushcount-standin-python:3.13
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends caddy libcap2-bin wget \
    && setcap cap_net_bind_service=+ep /usr/bin/caddy \
    && mkdir -p /config/caddy /data/caddy \
    && rm -rf /var/lib/apt/lists/*
ENV XDG_CONFIG_HOME=/config \
    XDG_DATA_HOME=/data
EXPOSE 80 443 443/udp 2019
WORKDIR /srv
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
