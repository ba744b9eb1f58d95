"""How many times a client gets the cap in a batch, and what is stated, kept and estimated for that many reports."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.segment_names import SegmentName, allotments, key_id, mark, segment_named
from hushcount.discovery.keep_rules import KeepRule
from hushcount.errors import UsageError
from hushcount.estimating import estimated
from hushcount.maths.odds import of_group
from hushcount.oracles.tally import Tally
from hushcount.privacy.statement import statement
from hushcount.privacy.unit import rule_of
from hushcount.senders import ALLOTMENTS, KEY, MOST_ALLOTMENTS, UNBOUND, Senders, told_in
from keys.directories import PublicFile, create
from pipelines.handover.batch_file import BatchFile, BatchSegment, collected
from pipelines.jobs.new_campaign import create_campaign
from tests.hushcount.discovery.test_keep_rules import ROUNDING, both_rules, worst

ONE, TWO = bytes(32), bytes([1] * 32)
"""Keys of client tokens."""


def segment(collector: str, key: bytes, serial: int = 1, way: str = "client-token") -> str:
    return f"{collector}-{serial:06d}-0123abcd-{mark(way, key)}.blocks"  # type: ignore[arg-type]


# What is counted


def test_the_name_of_a_segment_says_its_collector_its_way_and_its_key_and_nothing_of_the_key() -> None:
    for collector in ("one", "edge-2", "a-000001-0123abcd-none-0123456789abcdef"):
        for way in ("none", "bearer", "client-token"):
            name = segment(collector, ONE, way=way)
            assert segment_named(f"words/x/{name}") == SegmentName(collector, way, key_id(ONE))  # type: ignore[arg-type]
    assert segment_named("one-000001-0123abcd.blocks") is None
    assert segment_named(segment("one", ONE).replace("client-token", "clienttoken")) is None
    assert key_id(ONE) != key_id(TWO)
    assert ONE.hex()[:16] not in segment("one", ONE)


def test_a_client_has_the_cap_once_for_each_key_and_for_each_segment_that_names_none() -> None:
    assert allotments([]) == 1
    assert allotments([segment("one", ONE, serial) for serial in range(1, 9)]) == 1
    assert allotments([segment("one", ONE), segment("one", TWO)]) == 2
    assert allotments([segment("one", ONE), segment("two", ONE)]) == 2
    assert allotments([segment("one", ONE), "w/reports/part-0.blocks", "w/reports/part-1.blocks"]) == 3
    # The same name in two folders, that no collector gave: two files.
    assert allotments(["w/reports/part-0.blocks", "v/reports/part-0.blocks"]) == 2


def test_a_batch_counts_the_keys_of_each_stream() -> None:
    def parts(*names: str) -> tuple[BatchSegment, ...]:
        common: dict[str, Any] = {"records": 5, "bytes": 1, "digest": "0" * 64, KEY: "client-token"}
        return tuple(BatchSegment(path=f"words/e/w/reports/{name}", **common) for name in names)

    batch = BatchFile(
        campaign="words", epoch=1, fingerprint="0" * 64, window="w", segments_folder="s",
        segments={
            "reports": parts(segment("one", ONE), segment("one", ONE, 2)),
            "discovery": parts(segment("one", ONE), segment("one", TWO), segment("two", bytes([2] * 32))),
        },
    )  # fmt: skip
    summary = collected(batch)
    assert summary.senders == Senders("client-token", reports=1, discovery=3)
    assert summary.data()[ALLOTMENTS] == {"reports": 1, "discovery": 3}


def test_without_a_stated_allotment_no_client_guarantee_is_given(subtests: pytest.Subtests) -> None:
    for said in (
        *(None, [], 2, "2", {}, {"reports": 1}, {"discovery": 1}),
        *({"reports": wrong, "discovery": 1} for wrong in (0, -1, True, 1.0, "1", None, [1], 10**400)),
        {"reports": MOST_ALLOTMENTS + 1, "discovery": 1},
        *({"reports": 1, "discovery": wrong} for wrong in (0, -1, True, 1.5, 10**400)),
    ):
        with subtests.test(said=said):
            assert told_in({KEY: "client-token", ALLOTMENTS: said}) == UNBOUND
    assert told_in({KEY: "client-token"}) == UNBOUND
    told = Senders("client-token", 3, MOST_ALLOTMENTS)
    assert told_in(told.data()) == told


# What is stated


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> PublicFile:
    return create(tmp_path_factory.mktemp("keys"), days=30, now=datetime.now(timezone.utc) - timedelta(days=1))


def campaign(keys: PublicFile, cap: int = 3, memory: int = 0, **discovery: Any) -> Campaign:
    return create_campaign(
        "stated", keys, Path(), mechanism="gcms", epsilon=0.5, memory=memory,
        shuffle={"cap": cap, "minimum_batch": 5000, "delta": 1e-10},
        discovery={"epsilon": 0.5, "delta": 1e-7, **discovery},
    )  # fmt: skip


def test_every_guarantee_is_for_the_cap_once_for_each_allotment(keys: PublicFile) -> None:
    made = campaign(keys)
    once, twice = (statement(made, 100_000, Senders("client-token", times, times)).data() for times in (1, 2))
    one = once["shuffled"]["epsilon_per_report"]
    assert twice["local"]["epsilon"] == 6 * twice["local"]["epsilon_per_report"] == 2 * once["local"]["epsilon"]
    assert twice["shuffled"]["epsilon"] == 6 * one
    assert twice["shuffled"]["delta"] == of_group(lambda _: 1e-10, 6)(6 * one) > once["shuffled"]["delta"]
    assert twice["shuffled"]["odds"]["epsilon"] > once["shuffled"]["odds"]["epsilon"]
    # Discovery is calibrated for six, so that what clients were told still holds: it takes more of them.
    assert (twice["discovery"]["epsilon"], twice["discovery"]["delta"]) == (0.5, 1e-7)
    six = KeepRule("optimal", 0.5, 1e-7, "replace-one", 6)
    assert twice["discovery"]["clients_for_even_chance"] == six.count_for(0.5)
    assert six.count_for(0.5) > once["discovery"]["clients_for_even_chance"]
    assert twice["total"]["epsilon"] == 6 * one + 0.5
    said = "one client that sends at most 3 reports a stream in each of 2 collector windows"
    assert {twice["unit"], *(twice[name]["unit"] for name in ("local", "shuffled", "discovery", "total"))} == {said}
    people = [sentence for sentence in twice["plain"] if "person who" in sentence]
    assert len(people) == 4
    assert all(re.search(r"at most 3 reports .*in each of 2 windows at a collector", said) for said in people)
    assert "frequency reports are of 2 collector windows" in twice["sentences"][0]
    assert "discovery reports are of 2 collector windows" in twice["sentences"][1]
    assert once["unit"] == "one client that sends at most 3 reports a stream"
    assert not any("window" in sentence for sentence in once["plain"] + once["sentences"])


def test_each_stream_has_its_own_number(keys: PublicFile) -> None:
    stated = statement(campaign(keys), 100_000, Senders("client-token", reports=1, discovery=4)).data()
    assert stated["local"]["epsilon"] == 3 * stated["local"]["epsilon_per_report"]
    assert stated["discovery"]["clients_for_even_chance"] == KeepRule("optimal", 0.5, 1e-7, cap=12).count_for(0.5)
    both = "one client that sends at most 3 frequency reports and 12 discovery reports"
    assert stated["unit"] == stated["total"]["unit"] == both
    assert stated["local"]["unit"] == "one client that sends at most 3 reports a stream"
    assert any("3 reports to be counted and 12 for discovery" in sentence for sentence in stated["plain"])
    told = [sentence for sentence in stated["sentences"] if "windows at one collector each" in sentence]
    assert [sentence[:33] for sentence in told] == ["The discovery reports are of 4 co"]


def test_clients_that_remember_have_as_many_answers_as_values_and_no_gain(keys: PublicFile) -> None:
    made = campaign(keys, cap=1, memory=3)
    for times, answers in ((1, 1), (2, 2), (5, 3)):
        stated = statement(made, 100_000, Senders("client-token", times, times)).data()
        assert stated["local"]["epsilon"] == answers * stated["local"]["epsilon_per_report"]
        # A second equal answer of a client in the batch links both.
        assert (stated["shuffled"] is not None) == (times == 1)


def test_standard_errors_are_of_that_many_equal_answers(keys: PublicFile) -> None:
    made = campaign(keys, cap=2, memory=1)
    mechanism, asked = made.require_frequency(), np.arange(4, dtype=np.uint64)
    counts = mechanism.new_tally(asked)

    def error(senders: Senders) -> np.ndarray[Any, Any]:
        return estimated(made, Tally(counts, 100, asked, senders), asked).standard_error

    once = error(Senders("client-token"))
    assert np.allclose(error(Senders("client-token", reports=3)), 3**0.5 * once)
    # Clients keep to the cap by themselves, also where nobody holds them to it.
    assert np.allclose(error(Senders("none", reports=3)), 3**0.5 * once)


# What is kept

CASES = [(4.0, 1e-3, 1, 2, "replace-one"), (9.0, 5e-2, 1, 3, "replace-one"), (1.0, 1e-4, 1, 3, "add-remove")]


@both_rules
@pytest.mark.parametrize(("epsilon", "delta", "cap", "times", "relation"), CASES)
@pytest.mark.long(
    but=(
        "4.0-0.001-1-2-replace-one-optimal",
        "1.0-0.0001-1-3-add-remove-laplace",
    )
)
def test_the_rule_of_a_batch_holds_for_all_reports_of_a_client_and_that_of_one_window_does_not(
    keys: PublicFile, name: str, epsilon: float, delta: float, cap: int, times: int, relation: str
) -> None:
    """By enumeration of all ways in which one client with the cap in each of several windows changes the bins."""
    made = campaign(keys, cap, rule=name, epsilon=epsilon, delta=delta, relation=relation)
    rule = rule_of(made, Senders("client-token", discovery=times))
    replace = relation == "replace-one"
    assert worst(rule, epsilon, cap * times, replace=replace) <= delta + ROUNDING
    assert worst(made.require_keep_rule(), epsilon, cap * times, replace=replace) > 2 * delta


def test_where_no_client_is_told_from_another_the_rule_stays(keys: PublicFile) -> None:
    made = campaign(keys)
    assert rule_of(made, Senders("none", 5, 5)) == made.require_keep_rule()
    assert rule_of(made, Senders("client-token")) == made.require_keep_rule()


def test_where_no_rule_holds_for_so_many_a_sentence_refuses_and_counts_are_stated(keys: PublicFile) -> None:
    made, many = campaign(keys), Senders("client-token", reports=1, discovery=400)
    with pytest.raises(UsageError, match=r"1,200 reports .*cap of 3 .*400") as told:
        rule_of(made, many)
    assert "cap is 1200," in str(told.value)
    assert "1..1000" in str(told.value)
    stated = statement(made, 100_000, many).data()
    assert {"local", "shuffled"} <= stated.keys()
    assert not {"discovery", "total"} & stated.keys()
    assert stated["sentences"][-1].startswith("Discovery is refused")
    assert statement(made, None, many, ["discovery"]).data().keys() >= {"plain", "sentences"}
