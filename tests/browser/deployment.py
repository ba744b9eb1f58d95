"""A deployment that a web page reports to: keys, a signed campaign of both streams, a collector, a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from examples.web.pages import Pages
from hushcount.collection.windows import window_at
from pipelines.deployment.settings import Deployment
from pipelines.schedule.run import run
from pipelines.schedule.work import Vouched
from tests.evaluator.running import evaluating, manifests
from tests.shuffler.collector.running import Running, Site, now_text, running, wait_for
from tests.support.clocks import stopped
from tests.support.jobs import done, write_lines

HERE = Path(__file__).parent
BUILT = HERE.parents[1] / "build" / "web"
WORDS = [f"feature-{number}" for number in range(20)]
EPSILON, DISCOVERY_EPSILON, DELTA = 3.0, 2.0, 1e-9
FLOOR = 50
_EVALUATOR = """[evaluator]
name = "one"
port = 0
keys = "evaluator"
authentication = "client-token"
origins = ["{origin}"]
[analyzer]
evaluator = "evaluator"
"""


@dataclass(frozen=True)
class Measured:
    """A page, the collector that it reports to, and what belongs to both."""

    site: Site
    pages: Pages
    policy: dict[str, Any]

    @property
    def where(self) -> dict[str, Any]:
        """What an app gives its sender."""
        site, *evaluator = self.pages.collector.split()
        return {"site": site, "policy": self.policy, **({"evaluator": evaluator[0]} if evaluator else {})}

    @contextmanager
    def open(self) -> Iterator[Running]:
        """Run the collector and serve the page for a block; then all that was accepted is in the store."""
        asked = self.site.campaign().is_oblivious
        with running(self.site) as collector, evaluating(self.site) if asked else nullcontext() as evaluator:
            # The page may connect to both.
            self.pages.collector = " ".join(one.url for one in (collector, evaluator) if one is not None)
            with self.pages.serving():
                yield collector
            # The window ends for them, and they say what they took and answered.
            if evaluator is not None:
                evaluator.pass_by(timedelta(days=3))
                wait_for(lambda: manifests(self.site))
            collector.pass_by(timedelta(days=3))
            wait_for(lambda: all(self.site.manifests() for _ in self.site.windows()))
            assert collector.stop() == 0

    def close_window(self) -> Path:
        """Run what is due when the window and its grace are over; return the folder of the results."""
        later = datetime.now(timezone.utc) + timedelta(days=4)
        made = run(Deployment.read(self.site.config), clock=stopped(later), vouched=Vouched(clock_is_right=True))
        (folder,) = (self.site.base / "store" / "results" / "words").iterdir()
        assert made.problems == []
        return folder


def prepared(
    base: Path,
    *,
    page: Path | None = HERE,
    cap: int = 1,
    epsilon: float = EPSILON,
    of_policy: dict[str, Any] | None = None,
    signer: str = "operator",
    oblivious: bool = False,
) -> Measured:
    """Make a deployment of a signed campaign and its page.

    Args:
        base: an empty folder.
        page: the folder of the page's files; none if no page reports.
        cap: reports of one person that are counted.
        epsilon: of a frequency report.
        of_policy: what the app's policy has otherwise than the operator's file.
        signer: whose key signs the campaign file; nobody's if empty.
        oblivious: whether names come from an evaluator, which then runs beside the collector.
    """
    site = Site(base)
    done("keys", "new", "--out", base / "keys")
    for name in ("operator", "stranger"):
        done("keys", "new", "--role", "operator", "--out", base / name)
    path = base / "words.json"
    hashed = ["--hash", "oblivious", "--keys", base / "evaluator"] if oblivious else []
    if oblivious:
        done("keys", "new", "--role", "evaluator", "--out", base / "evaluator")
    done(
        "campaign", "new", "--id", "words", "--mechanism", "ss", "--epsilon", epsilon, "--keys", base / "keys",
        "--dictionary", write_lines(base / "words.txt", WORDS), "--discovery-epsilon", DISCOVERY_EPSILON,
        "--discovery-delta", DELTA, "--max-value-bytes", 32, "--cap", cap, "--min-batch", FLOOR, "--out", path, *hashed,
    )  # fmt: skip
    policy = base / "policy.json"
    done("campaign", "policy", "--campaign", path, "--keys", base / "operator", "--out", policy)
    if signer:
        done("campaign", "sign", "--campaign", path, "--keys", base / signer)
    pages = Pages([page, BUILT] if page else [])
    site.config.write_text(
        f"""store = "store"
ledger = "ledger.db"
[windows]
length = "{length()}"
grace = "1h"
[collector]
name = "one"
port = 0
journal = "journal"
least_free_bytes = 0
authentication = "client-token"
origins = ["{pages.origin}"]
{_EVALUATOR.format(origin=pages.origin) if oblivious else ""}"""
    )
    done("campaign", "publish", "--config", site.config, "--campaign", path, "--begins", now_text())
    return Measured(site, pages, {**json.loads(policy.read_text()), **(of_policy or {})})


def length() -> str:
    """Return the length of windows of which the present one lasts two hours at least."""
    now = datetime.now(timezone.utc)
    lengths = [timedelta(hours=hours) for hours in (24, 29, 31, 37)]
    long = next(length for length in lengths if window_at(now, length).end - now > timedelta(hours=2))
    return f"{long // timedelta(hours=1)}h"
