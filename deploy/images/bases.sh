#!/bin/sh
# Look up the current digests of the base images' tags, for --build-arg and for the Dockerfiles: make image-bases.
# It needs docker with buildx, and access to the registries.
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
