#!/bin/sh
# Keys and files of all parties for a try-out: windows of a minute, and a minimum batch of 20 reports. Whoever has this
# directory has all keys, so the try-out protects from outsiders only. deploy/README.md, "Try it in ten minutes".
set -eu
cd "$(dirname "$0")"
if [ -e campaign.json ]; then
    echo "campaign.json is here already: begin in a new copy of deploy/compose" >&2
    exit 1
fi
printf 'COMPOSE_FILE=compose.yaml:try-out.yaml\nEVERY=5\n' >> .env
docker compose build
docker compose run --rm setup '
    sed -i "s/\"1d\"/\"1m\"/; s/\"2d\"/\"10m\"/" *.toml
    printf "%s\n" dark-mode large-text mute-sounds auto-save spell-check night-light split-screen read-aloud > settings.txt
    for role in analyzer aux-server aux-signer shuffler analyzer-signer operator; do
        hushcount keys new --role $role --out $role-keys
    done
    mkdir -p trusted/shuffler trusted/aux-server trusted/analyzer
    cp shuffler-keys/public.json trusted/shuffler
    cp aux-signer-keys/public.json trusted/aux-server
    cp analyzer-signer-keys/public.json trusted/analyzer
    hushcount campaign new --id settings --mechanism ais --epsilon 2 --dictionary settings.txt --discovery-epsilon 1 \
              --min-batch 20 --keys analyzer-keys --keys aux-server-keys --out campaign.json
    hushcount campaign sign --campaign campaign.json --keys operator-keys
    hushcount campaign redact --campaign campaign.json --out redacted.json
    hushcount campaign policy --campaign campaign.json --keys operator-keys/public.json --out policy.json
    hushcount campaign publish --config whole.toml --campaign campaign.json
    hushcount campaign publish --config redacted.toml --campaign redacted.json
    chown -R "$(stat -c %u:%g .)" .
    chown -R 10001:10001 analyzer-keys analyzer-signer-keys aux-server-keys aux-signer-keys shuffler-keys'
