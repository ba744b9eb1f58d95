"""The metrics of each look of a run: of the look itself, and of the deployment; to a text file and an endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily, Metric

from hushcount.clock import MACHINE
from pipelines.deployment.campaigns import read_published
from pipelines.deployment.settings import Deployment
from pipelines.files.storage_errors import told
from pipelines.log.log import Logs
from pipelines.monitoring import telemetry, textfile
from pipelines.monitoring.deployment_metrics import PREFIX, Numbers, measure
from pipelines.schedule.done import Done

_LAST_GOOD = f"{PREFIX}last_good_look_timestamp_seconds"
_SECONDS = f"{PREFIX}hop_seconds"


class Looks:
    """Records the looks of one process, each with what is still true of those before."""

    def __init__(self) -> None:
        self._known: Mapping[str, Metric] = {}

    def record(
        self, deployment: Deployment, done: Done, *, logs: Logs, now: datetime | None = None, measures: bool = True
    ) -> None:
        """Tell what a look found, and add to its problems that this failed; do nothing where nobody listens.

        Args:
            done: the look's report; a look that failed as a whole has its error among its problems.
            logs: as the look has read them.
            measures: whether to measure anew; otherwise its numbers are those of the look before.
        """
        part = deployment.file.metrics
        if part is None and not telemetry.is_on():
            return
        path, moment = None if part is None else deployment.base / part.textfile, now or MACHINE.now()
        known, measured = self._known, None
        if measures:
            with _contained(done):
                measured = _measured(deployment, logs, moment, done.problems)
        if path is not None:
            with _contained(done):
                known = known or textfile.read(path)
        numbers = measured or [known.get(family.name, family) for family in Numbers().families]
        families = _labelled(deployment, [*_of_look(done, moment, known), *numbers])
        self._known = {family.name: family for family in families}
        if path is not None:
            with _contained(done):
                textfile.write(path, families)
        if telemetry.is_on():
            with _contained(done):
                telemetry.send(families)


@contextmanager
def _contained(done: Done) -> Iterator[None]:
    """Make a problem of whatever a block raises: the run was done and recorded, and must still say so."""
    try:
        yield
    except Exception as error:
        done.problems.append(f"metrics: {told(error)}")


def _measured(deployment: Deployment, logs: Logs, now: datetime, problems: list[str]) -> Sequence[Metric]:
    campaigns, _ = read_published(deployment.campaigns)
    return measure(deployment, campaigns, logs, now, problems).families


def _labelled(deployment: Deployment, families: Sequence[Metric]) -> list[Metric]:
    """Return the families that have samples; each sample says whose it is, because one collector may read several."""
    part = deployment.file.metrics
    name = (None if part is None else part.run) or "+".join(deployment.file.parties)
    for family in families:
        family.samples = [one._replace(labels={**one.labels, "run": name}) for one in family.samples]
    return [family for family in families if family.samples]


def _of_look(done: Done, now: datetime, known: Mapping[str, Metric]) -> list[Metric]:
    """Return what is said of the look itself, and of looks before: when one was good, and how long hops took."""
    good = GaugeMetricFamily(_LAST_GOOD, "When hushcount run last looked and had no problem.")
    if not done.problems:
        good.add_metric([], now.timestamp())
    took = {(name.partition("/")[0], name.rpartition(" ")[2]): each for name, each in done.seconds.items()}
    for sample in known[_SECONDS].samples if _SECONDS in known else ():
        took.setdefault((sample.labels["campaign"], sample.labels["hop"]), sample.value)
    hops = GaugeMetricFamily(_SECONDS, "How long the last job of each hop took.", labels=("campaign", "hop"))
    for names, each in sorted(took.items()):
        hops.add_metric(names, each)
    return [
        GaugeMetricFamily(f"{PREFIX}last_look_timestamp_seconds", "When hushcount run last looked.", now.timestamp()),
        known.get(_LAST_GOOD, good) if done.problems else good,
        GaugeMetricFamily(f"{PREFIX}problems", "What the last look could not do.", len(done.problems)),
        hops,
    ]
