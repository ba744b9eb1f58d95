"""The measurement of the collector: it sends what a collector of the default settings takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.collector import CASES, measure


@pytest.mark.long
def test_every_post_is_taken(tmp_path: Path) -> None:
    row = measure(tmp_path, CASES[0], 0.2, 0.1)
    assert row["refused"] == 0
    assert row["reports_per_second"] > 0
    assert row["server_cpu_us_per_report"] > 0
