"""The text file of a run's metrics: written whole at the end of each look, for a collector such as node_exporter's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from hushcount.formats.whole_files import write_over
from pipelines.batches.state import opened, snapshot
from pipelines.deployment.campaigns import read_published
from pipelines.deployment.settings import Deployment
from pipelines.files.storage_errors import told
from pipelines.metrics.numbers import PREFIX, Numbers, measure
from pipelines.schedule.report import Done

LAST_LOOK = f"{PREFIX}last_look_timestamp_seconds"
LAST_GOOD_LOOK = f"{PREFIX}last_good_look_timestamp_seconds"
PROBLEMS = f"{PREFIX}problems"
_MODE = 0o644
"""Who collects text files is another user than a run; they hold names of campaigns and numbers, and no secret."""
_MOST_BYTES = 1 << 24


class _Fixed(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def record(deployment: Deployment, done: Done, *, now: datetime | None = None, measures: bool = True) -> None:
    """Write what a look found, and add to its problems that this failed; without [metrics] do nothing.

    Args:
        done: the look's report; a look that failed as a whole has its error among its problems.
        measures: whether to read the state anew; otherwise its numbers are those of the look before.
    """
    part = deployment.file.metrics
    if part is None:
        return
    path, moment = deployment.base / part.textfile, now or datetime.now(timezone.utc)
    try:
        before = _read(path)
        known = _measured(deployment, moment, done.problems) if measures else _known(before)
        text = _text([*_look(done, moment, before), *known])
        write_over(path, text, _MODE)
    except Exception as error:
        # All else was done, and recorded.
        done.problems.append(f"metrics {path}: {told(error)}")


def _measured(deployment: Deployment, now: datetime, problems: list[str]) -> Sequence[Metric]:
    campaigns, _ = read_published(deployment.campaigns)
    with opened(deployment.state) as database, snapshot(database) as state:
        return measure(deployment, campaigns, state, now, problems).families


def _known(before: dict[str, Metric]) -> list[Metric]:
    """Return the numbers of the look before."""
    return [before.get(family.name, family) for family in Numbers().families]


def _look(done: Done, now: datetime, before: dict[str, Metric]) -> list[Metric]:
    """Return what is said of the look itself; when the last good one was is known from the file alone."""
    good = GaugeMetricFamily(LAST_GOOD_LOOK, "When hushcount run last looked and had no problem.")
    if not done.problems:
        good.add_metric([], now.timestamp())
    return [
        GaugeMetricFamily(LAST_LOOK, "When hushcount run last looked.", now.timestamp()),
        before.get(LAST_GOOD_LOOK, good) if done.problems else good,
        GaugeMetricFamily(PROBLEMS, "What the last look could not do.", len(done.problems)),
    ]


def _text(families: Sequence[Metric]) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Fixed([family for family in families if family.samples]))
    return generate_latest(registry)


def _read(path: Path) -> dict[str, Metric]:
    """Return the metrics of the file that the look before wrote, by name; none if there is none, or it is foreign."""
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_BYTES).decode()
        return {family.name: family for family in text_string_to_metric_families(text)}
    except (FileNotFoundError, ValueError):
        return {}
