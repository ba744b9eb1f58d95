"""A web page that counts which of its buttons are used, with a collector, and a run that closes windows each minute.

    python -m examples.web.demo --out demo-web

Most people are simulated, because one real person's reports never reach a minimum batch.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import json
import math
import secrets
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np

from examples.web.pages import Pages
from hushcount.campaigns.campaign import Campaign
from hushcount.collection.windows import window_at
from hushcount.many_clients import ManyClients
from pipelines.outputs.received_summary import folder_of

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FEATURES = ["sort", "unique", "upper-case", "reverse", "count"]
SHARES = [0.4, 0.25, 0.2, 0.1, 0.05]
WINDOW = 60
CAP = 5
EPSILON = 1.0
"""Epsilon of one click."""


def hushcount(*arguments: object) -> None:
    """Run a command to its end."""
    subprocess.run(  # noqa: S603  # our own command line
        [sys.executable, "-m", "pipelines", *map(str, arguments)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )


def set_up(root: Path, pages: Pages, port: int, crowd: int) -> Path:
    """Make keys, a signed campaign, its policy and a deployment; return the campaign file."""
    hushcount("keys", "new", "--out", root / "keys")
    hushcount("keys", "new", "--role", "operator", "--out", root / "operator")
    (root / "features.txt").write_text("".join(f"{feature}\n" for feature in FEATURES))
    campaign, config = root / "features.json", root / "deployment.toml"
    hushcount(
        "campaign", "new", "--id", "features", "--mechanism", "ss", "--epsilon", EPSILON, "--cap", CAP,
        "--keys", root / "keys", "--dictionary", root / "features.txt", "--min-batch", crowd // 2, "--out", campaign,
    )  # fmt: skip
    hushcount("campaign", "sign", "--campaign", campaign, "--keys", root / "operator")
    hushcount("campaign", "policy", "--campaign", campaign, "--keys", root / "operator", "--out", root / "policy.json")
    config.write_text(
        f"""store = "store"
ledger = "ledger.db"
[windows]
length = "{WINDOW}s"
grace = "10s"
patience = "10s"
[collector]
name = "one"
port = {port}
journal = "journal"
authentication = "client-token"
origins = ["{pages.origin}"]
"""
    )
    now = datetime.now(timezone.utc).isoformat()
    hushcount("campaign", "publish", "--config", config, "--campaign", campaign, "--begins", now)
    settings = {"site": pages.collector, "policy": json.loads((root / "policy.json").read_text())}
    factor = math.ceil(10 * math.exp(EPSILON)) / 10
    pages.made["/settings.json"] = json.dumps({**settings, "windowSeconds": WINDOW, "factor": factor}).encode()
    return campaign


def send_crowd(campaign: Campaign, port: int, crowd: int, rng: np.random.Generator) -> None:
    """Let simulated people send reports, each person with its own token."""
    client = ManyClients(campaign)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    window = window_at(datetime.now(timezone.utc), timedelta(seconds=WINDOW)).name
    path = f"/v1/campaigns/features/reports?fingerprint={campaign.fingerprint.hex()}&window={window}"
    for report in client.reports(list(rng.choice(FEATURES, size=crowd, p=SHARES))):
        headers = {"Client-Token": secrets.token_hex(16), "Content-Type": "application/octet-stream"}
        connection.request("POST", path, report.tobytes(), headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != http.client.ACCEPTED:
            raise SystemExit(f"the collector answered {answer.status}")
    connection.close()


def newest_estimates(root: Path) -> bytes | None:
    """Return the newest window's estimates as the page reads them."""
    for folder in sorted((root / "store" / "results" / "features").glob("*"), reverse=True):
        if not (folder / "summary.json").exists():
            continue
        made = Path(folder_of(str(folder)))
        with (made / "estimates.csv").open(encoding="utf-8", newline="") as stream:
            rows = [
                {"item": row["item"], **{name: float(row[name]) for name in ("count", "low", "high")}}
                for row in csv.DictReader(stream)
            ]
        begun = datetime.strptime(folder.name[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
        reports = json.loads((folder / "summary.json").read_text())["accepted"]
        return json.dumps({"window": begun.isoformat(), "reports": reports, "rows": rows}).encode()
    return None


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="directory to make")
    parser.add_argument("--built", type=Path, default=ROOT / "build" / "web", help="the bundled client")
    parser.add_argument("--crowd", type=int, default=500, help="simulated people a minute")
    parser.add_argument("--port", type=int, default=8000, help="port of the page; the collector's is the next")
    given = parser.parse_args()
    root = given.out.absolute()
    root.mkdir(parents=True)
    pages = Pages([HERE, given.built], given.port)
    pages.collector = f"http://127.0.0.1:{given.port + 1}"
    campaign = Campaign.read(set_up(root, pages, given.port + 1, given.crowd))
    config = ["--config", str(root / "deployment.toml")]
    rng = np.random.default_rng()
    with ExitStack() as stack:
        log = stack.enter_context((root / "log.txt").open("wb"))
        for command in (["collect", *config], ["run", *config, "--watch", "--every", "5s"]):
            process = subprocess.Popen(  # noqa: S603  # our own command line
                [sys.executable, "-m", "pipelines", *command], cwd=ROOT, stdout=log, stderr=log
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
        stack.enter_context(pages.serving())
        print(f"{pages.origin} counts its buttons; Ctrl-C ends it; its files are in {root}", flush=True)
        sent = 0.0
        while True:
            time.sleep(5)
            if time.monotonic() - sent > WINDOW:
                try:
                    send_crowd(campaign, given.port + 1, given.crowd, rng)
                except ConnectionError:
                    continue  # The collector does not listen yet, so try again.
                sent = time.monotonic()
            found = newest_estimates(root)
            if found is not None:
                pages.made["/estimates.json"] = found


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print()
