#!/bin/sh
# Install Debian's Chromium where it is missing, if this user may.
command -v chromium && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get || exit 1
apt-get update -qq && apt-get install -y -qq chromium > /dev/null
