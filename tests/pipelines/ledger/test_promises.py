"""What a ledger promises is kept: spent never passes the limit, what remains fits, and the way of composing stays."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hushcount.campaigns.campaign import Campaign
from hushcount.privacy.composition import Loss
from hushcount.privacy.statement import statement
from hushcount.senders import Senders
from pipelines.ledger.balance import OverLimit, balance, require_room
from pipelines.ledger.charges import Charge, Limit, stamp
from pipelines.ledger.charging import Charging, charging, cost_of
from pipelines.ledger.overview import check, describe, set_limit
from tests.pipelines.conftest import World
from tests.pipelines.ledger.test_charging import NOW, batch, made, upstream
from tests.support.jobs import done, new_campaign, refused

FILES = ("first", "second", "remembering", "remembering too")
BATCHES = 8
REPORTS = (5_000, 20_000, 100_000)


@pytest.fixture(scope="session")
def campaigns(world: World) -> dict[str, Campaign]:
    """Four epochs of one campaign; clients remember in two of them."""
    read: dict[str, Campaign] = {}
    for name in FILES:
        (world.root / name).mkdir()
        path = world.root / name / "small.json"
        more = ("--memory", "--memory-values", 2) if "remembering" in name else ()
        new_campaign(path, world.keys, *more, "--epoch", FILES.index(name) + 1, mechanism="gcms", min_batch=5000)
        read[name] = Campaign.read(path)
    return read


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root = tmp_path_factory.mktemp("batches")
    return [batch(root, str(number)) for number in range(BATCHES)]


class Jobs:
    """Jobs that run beside each other on one ledger: each reserves, and then commits or fails."""

    def __init__(self, ledger: Path, campaigns: dict[str, Campaign], batches: list[str]) -> None:
        self.ledger, self.campaigns, self.batches = ledger, campaigns, batches
        self.running: dict[int, tuple[str, Charging, ExitStack]] = {}

    def begin(self, number: int, file: str, reports: int) -> bool:
        """Reserve a batch; return whether there was room."""
        self.fail(number)
        stack = ExitStack()
        of = charging(self.ledger, self.campaigns[file], "analyze", upstream(reports), self.batches[number])
        try:
            self.running[number] = file, stack.enter_context(of), stack
        except OverLimit:
            return False
        return True

    def commit(self, number: int, accepted: int) -> bool:
        """Commit a batch; return whether there was room."""
        file, charge, stack = self.running.pop(number)
        try:
            with stack:
                stated = statement(self.campaigns[file], accepted, Senders("client-token"))
                charge.commit(cost_of(stated, "analyze"), accepted)
        except OverLimit:
            return False
        return True

    def fail(self, number: int) -> None:
        """End a job without a release."""
        if number in self.running:
            self.running.pop(number)[2].close()

    def account(self) -> dict[str, Any]:
        (account,) = describe(self.ledger).data()["campaigns"]
        return account


step = st.one_of(
    st.tuples(st.just("begin"), st.integers(0, BATCHES - 1), st.sampled_from(FILES), st.sampled_from(REPORTS)),
    st.tuples(st.just("commit"), st.integers(0, BATCHES - 1), st.sampled_from((4_000, *REPORTS))),
    st.tuples(st.just("fail"), st.integers(0, BATCHES - 1)),
)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    steps=st.lists(step, max_size=12), epsilon=st.floats(0.05, 6.0), delta=st.sampled_from([0.0, 1.5e-8, 1e-6]),
    fixed=st.booleans(),
)  # fmt: skip
@example(
    [
        ("begin", 0, "remembering", 100_000),
        ("begin", 1, "remembering", 100_000),
        ("begin", 2, "remembering too", 100_000),
        ("commit", 2, 100_000),
        ("commit", 0, 100_000),
        ("fail", 1),
    ],
    5.0,
    1.5e-8,
    False,
)
def test_no_order_of_charges_passes_the_limit(
    tmp_path: Path,
    campaigns: dict[str, Campaign],
    batches: list[str],
    steps: list[tuple[Any, ...]],
    epsilon: float,
    delta: float,
    fixed: bool,
) -> None:
    """Jobs of four campaign files reserve, commit and fail in any order.

    In the example, a batch that was committed while another one of its epoch was reserved is linked to nothing
    afterwards, and costs a delta.
    """
    ledger = tmp_path / f"{uuid.uuid4().hex}.db"
    set_limit(ledger, "small", epsilon, delta, None, fixed=fixed)
    jobs = Jobs(ledger, campaigns, batches)
    for kind, number, *rest in steps:
        if kind == "begin":
            jobs.begin(number, *rest)
        elif number in jobs.running:
            getattr(jobs, kind)(number, *rest)
        account = jobs.account()
        assert account["spent"]["epsilon"] is not None
        assert account["spent"]["epsilon"] <= epsilon
    for number in list(jobs.running):
        jobs.fail(number)
    assert check(ledger).over == []


# What remains, and the way of composing.


losses = st.builds(Loss, st.floats(0.01, 1.0), st.sampled_from([0.0, 1e-10, 1e-9]))
limits = st.builds(
    Limit, st.just("small"), st.floats(0.1, 10.0), st.sampled_from([0.0, 1e-8, 1e-6]), st.none(),
    st.just(stamp(NOW)), st.sampled_from(["basic", "joint"]),
)  # fmt: skip


@pytest.mark.long
@settings(max_examples=60)
@given(limit=limits, wanted=st.lists(losses, max_size=40), share=st.floats(0.0, 1.0))
@example(Limit("small", 5.22, 1e-6, None, stamp(NOW), "joint"), [Loss(0.2, 1e-9)] * 30, 1.0)
def test_what_remains_is_admitted(limit: Limit, wanted: list[Loss], share: float) -> None:
    """All of it, or a part of it, after whatever was admitted before."""
    admitted: list[Charge] = []
    for number, loss in enumerate(wanted):
        with suppress(OverLimit):
            require_room(limit, admitted, made(number, NOW, loss), loss, NOW)
            admitted.append(made(number, NOW, loss))
    left = balance(limit, admitted, NOW).remaining
    assert left is not None
    for part in (left, Loss(share * left.epsilon, share * left.delta)):
        require_room(limit, admitted, made(999, NOW, part), part, NOW)
    if limit.composition == "basic":
        more = Loss(left.epsilon + 1e-9, left.delta)
        with pytest.raises(OverLimit):
            require_room(limit, admitted, made(999, NOW, more), more, NOW)


def test_by_default_parameters_may_follow_from_results_and_charges_add_up() -> None:
    """A second campaign file of one campaign may be what `[next_epoch]` made of the first one's results."""
    limit, cost = Limit("small", 2.5, 1e-6, None, stamp(NOW)), Loss(0.05, 1e-10)
    first = [made(number, NOW, cost) for number in range(49)]
    later = replace(made(101, NOW, cost), fingerprint="ee", epoch=2)
    alone, both = balance(limit, first, NOW), balance(limit, [*first, later], NOW)
    assert (alone.spent.composition, alone.spent.epsilon, both.spent.epsilon) == ("basic", 2.45, 2.5)
    require_room(limit, first, later, Loss(2.0, 0.0), NOW)
    with pytest.raises(OverLimit):
        require_room(limit, [*first, later], replace(later, key="00"), Loss(2.0, 0.0), NOW)


def test_where_parameters_are_fixed_a_second_campaign_file_waits_for_the_next_period() -> None:
    limit = Limit("small", 2.5, 1e-6, 30, stamp(NOW), "joint")
    first = [made(number, NOW, Loss(0.05, 1e-10)) for number in range(100)]
    later = replace(made(101, NOW, Loss(0.05, 1e-10)), fingerprint="ee", epoch=2)
    for before in (first, first[:1], [replace(first[0], state="reserved", committed_at=None, host="elsewhere")]):
        with pytest.raises(OverLimit, match=r"--fixed-parameters.*2026-03-31T12:00:00"):
            require_room(limit, before, later, Loss(2.0, 0.0), NOW)
    require_room(limit, first, later, Loss(2.0, 0.0), NOW + timedelta(days=30))
    # Whatever came together all the same, by a clock that was set back, adds up.
    assert balance(limit, [*first[:40], later], NOW).spent.epsilon == 2.05


def test_the_way_of_composing_is_fixed_before_the_first_release(
    tmp_path: Path, campaigns: dict[str, Campaign], batches: list[str]
) -> None:
    ledger = tmp_path / "ledger.db"
    jobs = Jobs(ledger, campaigns, batches)
    terms = ("ledger", "set", "--ledger", ledger, "--campaign", "small", "--delta", 1e-6, "--epsilon")
    assert done(*terms, 1, "--json").json["limit"]["composition"] == "basic"
    assert done(*terms, 1, "--fixed-parameters", "--json").json["limit"]["composition"] == "joint"
    assert jobs.begin(0, "first", 100_000)
    assert jobs.commit(0, 100_000)
    assert jobs.account()["spent"]["composition"] == "joint"
    (made_first,) = done("ledger", "show", "--ledger", ledger, "--json").json["charges"]
    cost = made_first["epsilon"]
    assert jobs.account()["spent"]["epsilon"] < cost
    done(*terms, 2, "--fixed-parameters")
    assert not jobs.begin(1, "second", 100_000)
    assert "at least (" in done("ledger", "show", "--ledger", ledger).out
    sums = ("campaign small", f"{made_first['delta']:g}", "fixed-parameters")
    refused(*terms, cost / 2, says=sums)
    assert jobs.account()["limit"]["composition"] == "joint"
    done(*terms, cost)
    refused(*terms, 5, "--fixed-parameters", says=["fixed-parameters", "1 releases"])
    assert jobs.account()["limit"]["epsilon"] == cost
    done(*terms, 5)
    assert jobs.begin(1, "second", 100_000)
    assert jobs.commit(1, 100_000)
    assert jobs.account()["spent"]["composition"] == "basic"
