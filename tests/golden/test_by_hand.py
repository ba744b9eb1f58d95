"""What jobs and commands write and print on the stored deployment, and what a collector makes of a stored disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.golden import by_hand
from tests.golden.described import as_text, parsed_blocks
from tests.golden.site import COLLECTOR, EXPECTED, expected
from tests.support.jobs import files_under

RUNS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "hand": by_hand.chain,
    "tools": by_hand.tools,
    "campaigns": by_hand.campaigns,
    "collector": by_hand.collector,
}
NAMES = sorted(path.stem for path in EXPECTED.glob("*.json") if path.stem.partition("-")[0] in RUNS)
JOURNAL_HEADER, FRAME_HEADER = 144, 24


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return {name: run(tmp_path_factory.mktemp(name).resolve()) for name, run in RUNS.items()}


def test_it_is_as_it_was(seen: dict[str, dict[str, Any]], subtests: pytest.Subtests) -> None:
    for name in NAMES:
        with subtests.test(name=name):
            assert as_text(seen[name.partition("-")[0]][name]) == as_text(expected(name))


def test_all_that_is_gathered_is_compared(seen: dict[str, dict[str, Any]]) -> None:
    assert sorted(name for run in seen.values() for name in run) == NAMES


def test_a_collector_stores_exactly_what_the_stored_journals_hold(tmp_path: Path) -> None:
    by_hand.collector(tmp_path.resolve())
    stored = {path.parent.name: parsed_blocks(path.read_bytes()) for path in tmp_path.rglob("20210315*/*/*.blocks")}
    journals = {name.rpartition("/")[2].partition("-")[0]: data for name, data in files_under(COLLECTOR).items()}
    for stream, (header, records) in stored.items():
        journal, length = journals[stream][JOURNAL_HEADER:], header[2]
        frame = FRAME_HEADER + length
        assert len(journal) == 4 * frame == header[4] * frame
        sent = {journal[start + FRAME_HEADER : start + frame] for start in range(0, len(journal), frame)}
        assert sent == {records[start : start + length] for start in range(0, len(records), length)}
    assert sorted(stored) == ["discovery", "reports"]
