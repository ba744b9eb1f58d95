"""The measurement of the evaluator: it answers all that is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.evaluator import measure


@pytest.mark.long
def test_every_evaluation_is_answered(tmp_path: Path) -> None:
    (row,) = measure(tmp_path, 0.2, (3,))
    assert row["batch"] == 3
    assert row["over HTTP, a second of CPU"] > 0
    assert row["library alone, a second of CPU"] > 0
