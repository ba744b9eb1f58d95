#!/bin/sh
# Tries passes on one machine, in a new directory: an issuer that knows the accounts ann and bob, a collector that wants a
# pass, and three people who report. Usage: sh examples/passes/try.sh DIRECTORY
# docs/operators.md, "Passes: an issuer", says how to run them apart. PORT and ISSUER_PORT are free ports, 8080 and 8082.
set -eu
port=${PORT:-8080} issuer_port=${ISSUER_PORT:-8082}
mkdir "$1" || { echo "give a directory that does not exist yet" >&2; exit 1; }
cd "$1"
umask 077

exec 3>&1 > made.log

# Wait until the server with a process and a log has started.
await() {
    until grep -q '"started"' "$2"; do
        kill -0 "$1" 2> /dev/null || { cat "$2" >&2; exit 1; }
        sleep 0.2
    done
}

# The issuer's part: keys, and a rule.
mkdir issuer
hushcount keys passes --campaign-id pages --window 1h --days 3 --out issuer/passes
cat > issuer/may_report <<'END'
#!/bin/sh
read -r shown
case "$shown" in "Bearer ann" | "Bearer bob") echo "${shown#Bearer }" ;; *) exit 1 ;; esac
END
chmod u+x issuer/may_report
cat > issuer/deployment.toml <<END
store = "store"

[windows]
length = "1h"
grace = "1h"

[issuer]
name = "issuer"
port = $issuer_port
command = ["./may_report"]
END
hushcount issue --config issuer/deployment.toml 2> issuer.log &
issuer=$! collector=
trap 'kill $issuer $collector 2> /dev/null; wait' EXIT
await $issuer issuer.log

# The operator's part: a campaign with the issuer's public keys, and a collector.
printf '%s\n' dark-mode large-text mute-sounds > settings.txt
hushcount keys new --role analyzer --out keys
hushcount keys new --role operator --out operator-keys
hushcount campaign new --id pages --mechanism grr --epsilon 4 --dictionary settings.txt --keys keys \
    --passes issuer/passes/pages.passes.json --out pages.json
hushcount campaign sign --campaign pages.json --keys operator-keys
hushcount campaign policy --campaign pages.json --keys operator-keys/public.json --out policy.json
cat > deployment.toml <<END
store = "store"

[windows]
length = "1h"
grace = "1h"

[collector]
name = "one"
port = $port
authentication = "privacy-pass"
END
hushcount campaign publish --campaign pages.json

hushcount collect 2> collector.log &
collector=$!
await $collector collector.log

# The app's part: eve has no account, so her report waits on her own disk.
exec >&3
report() {
    echo "Bearer $1" > "$1.txt"
    echo "$1:"
    hushcount send --site "http://127.0.0.1:$port" --policy policy.json --folder "$1" --window 1h \
        --issuer "http://127.0.0.1:$issuer_port" --authorization-file "$1.txt" dark-mode
}
report ann
report bob
if report eve; then echo "the issuer served eve, who has no account" >&2; exit 1; else echo "exit status $?"; fi
echo "The collector took the reports of ann and bob. The issuer's rule refused eve (not_entitled), so her report waits:"
echo "issuer/may_report is the rule. $1 has all files, made.log what the commands printed; both servers end now."
