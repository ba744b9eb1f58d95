"""Metrics as a file in Prometheus' text format, for a collector of text files such as node_exporter's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from hushcount.formats.whole_files import write_over

_MODE = 0o644
"""Others may read the file, because the collector of text files runs as another user.

The files hold names of campaigns and numbers, but no secret.
"""
_MOST_BYTES = 1 << 24


class _Fixed(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def write(path: Path, families: Sequence[Metric]) -> None:
    """Write metrics to a file, which is replaced in one step; if that raises OSError, the old file is unchanged."""
    registry = CollectorRegistry()
    registry.register(_Fixed(families))
    write_over(path, generate_latest(registry), _MODE)


def read(path: Path) -> dict[str, Metric]:
    """Return the metrics in a file, by name; empty if the file is missing or has another format."""
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_BYTES).decode()
        return {family.name: family for family in text_string_to_metric_families(text)}
    except (FileNotFoundError, ValueError):
        return {}
