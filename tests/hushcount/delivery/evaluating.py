"""Senders of a campaign with an evaluator, and what the parties read in what they sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hushcount.campaigns.campaign import Campaign
from hushcount.delivery import Sender
from hushcount.discovery.pairs import HASH_BYTES, name_of
from keys.private import PrivateKey
from tests.hushcount.delivery.fake_collector import EVALUATOR, FakeCollector, collecting, oblivious
from tests.hushcount.test_client import ANALYZER, AUX_SERVER

NEW = "a-secret-value"
"""A value that nobody listed."""


@contextmanager
def evaluating(**options: Any) -> Iterator[FakeCollector]:
    """Run a collector with an evaluator for a block."""
    with collecting(epochs=[oblivious()], **options) as collector:
        yield collector


def read(
    report: bytes,
    campaign: Campaign | None = None,
    aux_server: PrivateKey = AUX_SERVER,
    analyzer: PrivateKey = ANALYZER,
) -> tuple[bytes, str | None]:
    """Return what the auxiliary server and the analyzer read together: hash and value; None if it is a blank."""
    form = (campaign or oblivious()).discovery_format
    pair = aux_server.open(report)
    assert pair is not None
    assert pair.startswith(form.binding)
    pair = pair[len(form.binding) :]
    inner = analyzer.open(pair[HASH_BYTES:])
    assert inner is not None
    return pair[:HASH_BYTES], form.unpad(inner[len(form.binding) :])


def values(collector: FakeCollector) -> list[str | None]:
    """Return the value of each discovery report that arrived; None of a blank."""
    known = {one.fingerprint.hex(): one for one in collector.epochs}
    posts = [post for post in collector.posts if post.stream == "discovery"]
    return [read(report, known[post.fingerprint])[1] for post in posts for report in post.reports]


def hash_of(value: str, campaign: Campaign | None = None) -> bytes:
    """Return the bin of a value, as only the evaluator's key makes it."""
    binding = (campaign or oblivious()).binding("discovery")
    return name_of(EVALUATOR.outputs([binding + value.encode()])[0]).hash


def told(one: Sender, *kinds: str) -> list[tuple[str, str, int]]:
    """Return the events of some kinds."""
    return [(event.what, event.reason, event.reports) for event in one.log if event.what in kinds]


def pass_time(one: Sender, seconds: float = 0.0) -> None:
    """End all pauses; let what is queued, and each evaluation and its time, be so much older."""
    for fact in ("hold", "hold_evaluator"):
        one._queue.note(fact, "1 0")
    with one._queue.database.change() as tables:
        tables.execute("UPDATE rows SET due = due - ?, claimed_until = max(0, claimed_until - ?)", (seconds, seconds))
    for evaluation in one._evaluations._open:
        evaluation.__dict__.update(due=evaluation.due - seconds, until=evaluation.until - seconds)


def is_on_disk(folder: Path, value: str = NEW) -> bool:
    """Return whether a value stands anywhere in a sender's folder."""
    return any(value.encode() in path.read_bytes() for path in folder.iterdir())
