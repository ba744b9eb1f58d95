"""Write the metrics of each run, and of the deployment, to a text file and to an OpenTelemetry endpoint.

A look is one run, or one round of `hushcount run --watch`.
"""

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
    """Records the metrics of each look of one process, and keeps values of earlier looks that are still valid."""

    def __init__(self) -> None:
        self._known: Mapping[str, Metric] = {}

    def record(
        self, deployment: Deployment, done: Done, *, logs: Logs, now: datetime | None = None, measures: bool = True
    ) -> None:
        """Write the metrics of a look, and add failures to the look's problems; do nothing if no destination is set.

        Args:
            done: the report of the look; if the look failed as a whole, the report's problems include the error.
            logs: the logs, as the look has read them.
            measures: whether to measure the deployment; otherwise the deployment's metrics are those of the look
                before.
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
    """Turn any exception of a block into a problem, because the run has done its work and must still report it."""
    try:
        yield
    except Exception as error:
        done.problems.append(f"metrics: {told(error)}")


def _measured(deployment: Deployment, logs: Logs, now: datetime, problems: list[str]) -> Sequence[Metric]:
    campaigns, _ = read_published(deployment.campaigns)
    return measure(deployment, campaigns, logs, now, problems).families


def _labelled(deployment: Deployment, families: Sequence[Metric]) -> list[Metric]:
    """Return the metrics that have samples; each sample names its run, because one collector may read several runs."""
    part = deployment.file.metrics
    name = (None if part is None else part.run) or "+".join(deployment.file.parties)
    for family in families:
        family.samples = [one._replace(labels={**one.labels, "run": name}) for one in family.samples]
    return [family for family in families if family.samples]


def _of_look(done: Done, now: datetime, known: Mapping[str, Metric]) -> list[Metric]:
    """Return the metrics of this look, and from earlier looks the time of the last good look and the times of hops."""
    good = GaugeMetricFamily(_LAST_GOOD, "When hushcount run last ended without a problem.")
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
        GaugeMetricFamily(f"{PREFIX}problems", "The number of problems of the last look.", len(done.problems)),
        hops,
    ]
