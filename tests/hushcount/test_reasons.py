"""The closed list of reasons for a rejection: docs/operators.md explains each, and no job counts by another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from hushcount.errors import HushcountError, UsageError
from hushcount.reasons import DAMAGE, REASONS, reason_of
from keys import opening
from pipelines.jobs.dead_letters import CURES
from pipelines.log.fold import SEGMENT_STATES
from pipelines.outputs.counts import HopCounts, StreamCounts, counts_of
from pipelines.outputs.received_summary import counts_in

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
_TABLE = re.compile(r"^\| reason \| what happened \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)


def test_the_page_for_operators_explains_every_reason_once_and_no_other() -> None:
    (table,) = _TABLE.findall(PAGE.read_text(encoding="utf-8"))
    cells = [line.split("|")[1] for line in table.splitlines()]
    named = [name for cell in cells if "`status`" not in cell for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted(REASONS)
    # What stands there beside reasons is a state that `hushcount status` shows.
    beside = {name for cell in cells if "`status`" in cell for name in re.findall(r"`(\w+)`", cell)} - {"status"}
    assert beside == {"too_late", "given_up"} < set(SEGMENT_STATES)


def test_a_job_counts_by_no_other_reason() -> None:
    sums = {"reports:received": 3, "reports:accepted": 1}
    assert counts_of({**sums, "reports:over_cap": 2}, ("reports",))["reports"].rejected == {"over_cap": 2}
    with pytest.raises(HushcountError, match="'over_caps'"):
        counts_of({**sums, "reports:over_caps": 2}, ("reports",))


def test_every_outcome_of_opening_is_counted_under_its_own_name() -> None:
    assert {outcome.name.lower() for outcome in opening.Outcome} - {"accepted"} < set(REASONS)
    assert [opening._COUNTED[outcome] for outcome in opening.Outcome] == [one.name.lower() for one in opening.Outcome]


def test_another_party_may_count_by_a_reason_that_is_new_but_only_by_a_short_name() -> None:
    def read(*names: str) -> Mapping[str, int]:
        counted = StreamCounts(len(names), 0, dict.fromkeys(names, 1))
        return counts_in(HopCounts.of("shuffle", {"reports": counted}).data(), "summary").rejected

    assert read("over_cap", "of_a_later_release") == {"over_cap": 1, "of_a_later_release": 1}
    for names in (["a" * 41], ["two words"], [""], ["\x1b[31m"], [f"a{'b' * more}" for more in range(65)]):
        with pytest.raises(UsageError, match="rejected"):
            read(*names)


def test_a_name_is_a_reason_or_none() -> None:
    assert [reason_of(one) for one in ("malformed", "too_late", "")] == ["malformed", None, None]
    assert {*DAMAGE, *CURES} < set(REASONS)
