"""Run a real collector for the tests of the TypeScript client, and say at the end what it stored.

Prints one line of JSON with its address, the policy of its campaign and the token of its metrics; with the argument
`passes` also with the address of a real issuer, and the authorization of two accounts. It ends when its standard input
does, and then prints another with the number of distinct reports of each stream, and of clients.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from hushcount.policy import terms_of
from tests.hushcount.campaigns.vouched import KEY, public_part
from tests.hushcount.delivery.test_real_collector import prepared, stopped
from tests.issuer.running import ask_for_passes, authorization, issuing, make_issuer
from tests.shuffler.collector.running import METRICS_TOKEN, make_site


def main() -> None:
    """Collect until standard input ends."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        base = Path(folder)
        if "passes" in sys.argv:
            issuer_site = make_issuer(base / "issuer")
            site = make_site(base / "site", window="1d", collector={"authentication": "privacy-pass", "origins": ["*"]})
            ask_for_passes(site, issuer_site)
            issuer = running.enter_context(issuing(issuer_site))
            shown = {"issuer": issuer.url, "authorizations": [authorization(name) for name in ("ann", "bob")]}
        else:
            site, shown = prepared(base / "site", cap=100, origins=["*"]), {}
        policy = json.loads(terms_of(site.campaign(), (public_part(KEY),)).text())
        with stopped(site) as collector:
            said = {"url": collector.url, "policy": policy, "metricsToken": METRICS_TOKEN, **shown}
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()
            sys.stdin.read()
        stored = {stream: len(set(site.sealed(stream))) for stream in ("reports", "discovery")}
        rows = [rows.view("u1").reshape(len(rows), -1) for rows in site.stored("reports")]
        clients = {bytes(row[:16]) for block in rows for row in block}
        sys.stdout.write(json.dumps({**stored, "clients": len(clients)}) + "\n")


if __name__ == "__main__":
    main()
