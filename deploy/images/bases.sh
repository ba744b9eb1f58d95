#!/bin/sh
# Look up the digests that the base images' tags have today, for --build-arg and for the Dockerfiles: make image-bases.
# Needs docker with buildx and a registry in reach.
set -eu
cd "$(dirname "$0")/../.."
sed -n 's/^ARG \(BASE\|BUILDER\|MAVEN\|JAVA\|SDK\|LAUNCHER\)=\(.*\)$/\1 \2/p' deploy/images/*.Dockerfile deploy/dataflow/Dockerfile | sort -u |
while read -r name image; do
    tagged=${image%@*}
    digest=$(docker buildx imagetools inspect "$tagged" --format '{{json .Manifest}}' | sed -n 's/.*"digest":"\(sha256:[0-9a-f]*\)".*/\1/p')
    [ -n "$digest" ] || { echo "no digest for $tagged" >&2; exit 1; }
    [ "$image" = "$tagged@$digest" ] && state=pinned || state="now another: $image"
    echo "$name=$tagged@$digest ($state)"
done
