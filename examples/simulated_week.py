"""A week in twenty minutes: a real collector and real runs, a key rotation, kills, copies, late and broken reports.

    python examples/simulated_week.py --out week

Each simulated day is one window. Each client sends one report a day, in its own post, with its own token. One client in
a hundred sends the same bytes twice, and another client in a hundred sends its report a day late. For every thousand
clients, there is one post with bytes that no key opens, and one post with a wrong length. On day 3 the analyzer's key
is rotated. On day 5 the collector and two runs are killed during their work. At the end `hushcount status` must account
for every report, so the script compares its numbers with the numbers of sent reports. From day 6 on one word is 50 %
more frequent, and `hushcount ask change` must find it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
from week_clients import RISING, WORDS, Day, Post, made_posts, send

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.epochs import read_collection
from hushcount.collection.windows import Window, window_at

DAYS, ROTATION, KILL, RISE = 7, 3, 5, 6


def hushcount(*arguments: object) -> str:
    """Run a command to its end and return what it printed."""
    command = [sys.executable, "-m", "pipelines", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own command line
    if ran.returncode:
        raise SystemExit(f"{' '.join(map(str, arguments))}: status {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def started(*arguments: object, log: Path) -> subprocess.Popen[bytes]:
    """Start a command."""
    with log.open("ab") as stream:
        return subprocess.Popen(  # noqa: S603  # our own command line
            [sys.executable, "-m", "pipelines", *map(str, arguments)], stdout=stream, stderr=stream
        )


def set_up(root: Path, seconds: int, port: int, clients: int) -> Path:
    """Make keys, a campaign and a deployment; return the deployment file."""
    hushcount("keys", "new", "--out", root / "keys")
    hushcount("keys", "new", "--role", "shuffler", "--out", root / "shuffler-keys")
    (root / "words.txt").write_text("".join(f"{word}\n" for word in WORDS))
    config = root / "deployment.toml"
    config.write_text(
        f"""store = "store"
sign_with = "shuffler-keys"
shuffler_keys = "shuffler-keys/public.json"
ledger = "ledger.db"
collectors = ["one"]
[windows]
length = "{seconds}s"
grace = "{2 * seconds}s"
patience = "{seconds // 2}s"
[collector]
name = "one"
port = {port}
journal = "journal"
authentication = "client-token"
[next_epoch.features]
"""
    )
    hushcount(
        "campaign", "new", "--id", "features", "--mechanism", "ais", "--epsilon", 2, "--dictionary", root / "words.txt",
        "--keys", root / "keys", "--out", root / "features.json", "--cap", 2, "--min-batch", max(10, clients // 400),
    )  # fmt: skip
    hushcount("campaign", "publish", "--config", config, "--campaign", root / "features.json")
    return config


def sleep_until(moment: datetime) -> None:
    """Wait for a moment."""
    time.sleep(max(0.0, (moment - datetime.now(timezone.utc)).total_seconds()))


def collect_a_day(
    root: Path,
    config: Path,
    window: Window,
    port: int,
    collector: subprocess.Popen[bytes],
    posts: list[Post],
    kill: bool,
) -> tuple[Day, subprocess.Popen[bytes]]:
    """Send a day's posts; on day KILL, kill the collector while posts are sent, and start it again."""
    day = Day(window.name)
    sending = asyncio.new_event_loop()

    async def whole() -> None:
        nonlocal collector
        task = asyncio.ensure_future(send(posts, port, day))
        if kill:
            while day.answers[202] < len(posts) // 3:
                await asyncio.sleep(0.05)
            collector.send_signal(signal.SIGKILL)
            collector.wait()
            print(f"  {window.name}: killed the collector after {day.answers[202]:,} acknowledgements")
            collector = started("collect", "--config", config, log=root / "collector.log")
        await task

    sending.run_until_complete(whole())
    sending.close()
    return day, collector


def process(root: Path, config: Path, kill: bool) -> None:
    """Call `hushcount run` for the windows that are due; on day KILL, first start and kill two runs."""
    for delay in (6.0, 10.0) if kill else ():
        running = started("run", "--config", config, log=root / "run.log")
        try:
            running.wait(delay)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGKILL)
            running.wait()
            print(f"  killed a run after {delay:.0f} s")
    print("  " + hushcount("run", "--config", config).replace("\n", "\n  ").rstrip())


def main() -> None:
    """Simulate the week, and compare Hushcount's account of the reports with what was sent."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="directory to make")
    parser.add_argument("--clients", type=int, default=200_000)
    parser.add_argument("--seconds", type=int, default=180, help="length of a day")
    parser.add_argument("--port", type=int, default=8089)
    given = parser.parse_args()
    root = given.out.absolute()
    root.mkdir(parents=True)
    config = set_up(root, given.seconds, given.port, given.clients)
    rng = np.random.default_rng()
    clients = [secrets.token_hex(16) for _ in range(given.clients)]
    collector = started("collect", "--config", config, log=root / "collector.log")
    days: list[Day] = []
    late: list[Post] = []
    length = timedelta(seconds=given.seconds)
    window = window_at(datetime.now(timezone.utc) + length, length)
    for number in range(1, DAYS + 1):
        sleep_until(window.start + timedelta(milliseconds=200))
        if number == ROTATION:
            hushcount("keys", "rotate", "--keys", root / "keys", "--role", "analyzer", "--overlap", "1d")
            print("  the analyzer's key was rotated: the next epoch will have it")
        folder = root / "campaigns" / "features"
        epoch = read_collection(folder / "collection.json").current(datetime.now(timezone.utc))
        if epoch is None:
            raise SystemExit("no epoch is current")
        print(f"day {number}, {window.name}, epoch {epoch.epoch}")
        fresh, later = made_posts(Campaign.read(folder / epoch.file), clients, rng, number >= RISE)
        day, collector = collect_a_day(root, config, window, given.port, collector, late + fresh, number == KILL)
        took = datetime.now(timezone.utc)
        if took >= window.end:
            raise SystemExit(f"the day was too short for this machine: give more --seconds ({took - window.end} over)")
        days.append(day)
        late = later
        window = window_at(window.end, length)
        sleep_until(window.start + timedelta(seconds=3))
        process(root, config, number == KILL)
    collector.send_signal(signal.SIGTERM)
    collector.wait()
    report(root, config, days)
    analyse(root, config)


def report(root: Path, config: Path, days: list[Day]) -> None:
    """Show Hushcount's account of the reports, and compare it with what was sent."""
    print(hushcount("status", "--config", config))
    (account,) = json.loads(hushcount("status", "--config", config, "--json"))
    received = Counter[str]()
    for counts in account["windows"]:
        received[counts["window"]] += counts["received"]
    sums: Counter[str] = Counter()
    for hop in account["hops"]:
        for reason, count in hop["rejected"].items():
            sums[f"{hop['hop']} {reason}"] += count
        sums[f"{hop['hop']} accepted"] += hop["accepted"]
    print(f"{'window':18} {'acknowledged':>13} {'received':>10}  sent")
    for day in days:
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(day.sent.items()))
        acknowledged = day.answers[202]
        print(f"{day.window:18} {acknowledged:>13,} {received[day.window]:>10,}  {kinds}; answers {dict(day.answers)}")
        if received[day.window] < acknowledged:
            raise SystemExit(f"{day.window}: {acknowledged - received[day.window]:,} acknowledged reports are missing")
    sent: Counter[str] = sum((day.sent for day in days), Counter())
    print({**sums})
    expected = {
        "shuffle duplicate": sent["copy"] + sum(received.values()) - sum(day.answers[202] for day in days),
        "analyze not_opened": sent["unreadable"],
        "analyze accepted": sent["report"] + sent["late"],
    }
    for name, number in expected.items():
        verdict = "as sent" if sums[name] == number else f"BUT {number:,} were sent"
        print(f"{name}: {sums[name]:,}, {verdict}")
        if sums[name] != number:
            raise SystemExit(1)
    print(f"every report of the week is accounted for; all files are in {root}")


def analyse(root: Path, config: Path) -> None:
    """Ask what changed in the last days, compare the answer with the planted change, and make the page of the week."""
    asked = (
        "ask",
        "change",
        "--config",
        config,
        "--campaign",
        "features",
        "--last",
        DAYS - RISE + 1,
        "--against",
        RISE - 1,
    )
    print(hushcount(*asked))
    rows = json.loads(hushcount(*asked, "--json"))["rows"]
    found = [row["group"] for row in rows if row["significant"]]
    print(f"planted: {WORDS[RISING]} rose by half of its share; found: {', '.join(found) or 'nothing'}")
    hushcount("dashboard", "--config", config, "--out", root / "page.html")
    print(f"the page of the week is {root / 'page.html'}")
    if WORDS[RISING] not in found:
        raise SystemExit("the planted change was not found")


if __name__ == "__main__":
    main()
