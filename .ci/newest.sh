#!/bin/sh
# Make a root of Debian's next release, which has the newest Pythons, and run in it what depends on the interpreter.
#   newest.sh get ROOT; newest.sh test ROOT
set -eu
root=$2
case $1 in
get)
    [ -e "$root/made" ] && exit 0
    command -v debootstrap > /dev/null || apt-get install -y -qq debootstrap > /dev/null
    rm -rf "$root"
    mkdir -p "$root"
    mirror=$(sed -nE 's,^(URIs:|deb) +(https?://[^ ]+/debian)/?( .*)?$,\2,p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null | head -1)
    # The script of sid serves every later release, whether this debootstrap knows its name or not.
    debootstrap --variant=minbase --include=ca-certificates,git,make,python3.14,python3.14-venv,python3.15,python3.15-venv \
        forky "$root" "${mirror:-http://deb.debian.org/debian}" sid
    touch "$root/made"
    ;;
test)
    # Behind a proxy that ends TLS, the machine trusts an authority that Debian does not.
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    cp /etc/resolv.conf "$root/etc/"
    rm -rf "$root/src"
    git clone --quiet . "$root/src"
    # What is mounted goes with the namespace, when this command ends.
    unshare --mount sh -euc '
        mount -t proc proc "$0/proc"
        run() { chroot "$0" env HOME=/root make -C /src "$@"; }
        run test-pythons OTHERS=3.14 PORTABLE="-m '"'not long'"' tests/hushcount/delivery tests/pipelines/schedule/test_run.py"
        run test-client PYTHON=python3.15
    ' "$root"
    ;;
esac
