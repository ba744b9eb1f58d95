"""Windows of fixed parameters compose jointly: more fit into a limit, and what is not sure composes by its sum."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import FormatError
from hushcount.privacy.composition import Loss, basic
from hushcount.privacy.joint import joint_epsilon
from hushcount.privacy.statement import window_of
from hushcount.senders import Senders
from pipelines.audit.foresight import _passes
from pipelines.ledger.balance import OverLimit, balance, require_room, spent
from pipelines.ledger.charges import Charge, Limit, stamp
from pipelines.ledger.charging import release_of
from pipelines.ledger.file import opened, read_limit, writing
from pipelines.ledger.overview import describe, set_limit
from pipelines.ledger.stated_charges import noted, proof_of, put_back
from pipelines.outputs.account import Account
from tests.pipelines.conftest import World
from tests.pipelines.ledger.test_charging import FORWARDED, NOW, batch, charges, release
from tests.support.jobs import done, new_campaign

TOKEN = Senders("client-token")
DELTA = 1e-6


@pytest.fixture(scope="module")
def campaign(world: World, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    path = tmp_path_factory.mktemp("joint") / "small.json"
    return Campaign.read(new_campaign(path, world.keys, dictionary=world.dictionary, min_batch=5000))


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def account(path: Path) -> Account:
    return describe(path, "small").accounts["small"]


def filled(path: Path, of: Campaign, tmp_path: Path, windows: int, *, fixed: bool) -> list[Charge]:
    set_limit(path, "small", 5.0, DELTA, None, fixed=fixed)
    for number in range(windows):
        release(path, of, batch(tmp_path, f"window-{number}"))
    return charges(path)


@pytest.mark.long
def test_windows_of_fixed_parameters_cost_less_than_their_sum(
    ledger: Path,
    campaign: Campaign,
    tmp_path: Path,
) -> None:
    made = filled(ledger, campaign, tmp_path, 6, fixed=True)
    one = window_of(campaign, TOKEN, FORWARDED)
    assert one is not None
    assert 0.97 * FORWARDED < one.reports <= FORWARDED
    assert [charge.window for charge in made] == [one] * 6
    found, sums = account(ledger).spent, basic([charge.loss for charge in made])
    assert (found.composition, found.delta) == ("joint", DELTA)
    assert found.epsilon == joint_epsilon([one] * 6, DELTA) < 0.5 * sums.epsilon
    shown = " ".join(done("ledger", "show", "--ledger", ledger).out.split())
    assert "joint" in shown
    # It says for whom, against which neighbours, and on whom it rests.
    assert all(word in shown for word in ("one client", "replace-one", "shuffler was honest", "no parameter"))
    # What remains is what the sums leave: so much is certain.
    left = account(ledger).remaining
    assert left is not None
    assert left.epsilon == pytest.approx(5.0 - sums.epsilon)
    # A limit that the sums would pass has room.
    with opened(ledger) as connection:
        limit = read_limit(connection, "small")
    assert limit is not None
    wanted = replace(made[0], key="00", state="reserved", committed_at=None, reserved_at=stamp(NOW))
    tight = replace(limit, epsilon=sums.epsilon)
    require_room(tight, made, wanted, Loss(2.0, 0.0), NOW)
    for wrong in (replace(tight, composition="basic"), replace(tight, epsilon=found.epsilon)):
        with pytest.raises(OverLimit):
            require_room(wrong, made, wanted, Loss(2.0, 0.0), NOW)


def test_by_default_pairs_are_what_composes(
    ledger: Path,
    campaign: Campaign,
    tmp_path: Path,
) -> None:
    filled(ledger, campaign, tmp_path, 4, fixed=False)
    assert account(ledger).spent.composition == "basic"


@pytest.mark.long
def test_a_curve_of_another_cost_does_not_count_and_an_altered_one_is_refused(
    ledger: Path,
    campaign: Campaign,
    tmp_path: Path,
) -> None:
    made = filled(ledger, campaign, tmp_path, 2, fixed=True)
    # A release of fewer reports under a charged key: the curve is of what costs more.
    again = release(ledger, campaign, batch(tmp_path, "window-0"), 10_000)
    few = window_of(campaign, TOKEN, 10_000)
    assert few is not None
    now = {charge.key: charge.window for charge in charges(ledger)}
    assert now == {charge.key: charge.window for charge in made} | {made[0].key: few}
    assert again["spent"]["composition"] == "joint"
    with opened(ledger) as connection, writing(connection):
        connection.execute("UPDATE charges SET curve = NULL WHERE key = ?", (made[1].key,))
    with pytest.raises(FormatError, match="altered"):
        charges(ledger)


def test_what_is_linked_or_not_told_apart_has_no_curve(world: World, campaign: Campaign) -> None:
    assert window_of(campaign, Senders("bearer"), FORWARDED) is None
    assert window_of(campaign, TOKEN, None) is None
    # Below the minimum batch, and where a report gains nothing.
    assert window_of(campaign, TOKEN, 4999) is None
    remembers = Campaign.read(
        new_campaign(world.root / "linked.json", world.keys, "--memory", dictionary=world.dictionary)
    )
    assert window_of(remembers, TOKEN, FORWARDED) is None
    twice = window_of(campaign, Senders("client-token", 2, 1), FORWARDED)
    assert twice is not None
    assert twice.of_client == 2


@pytest.mark.long
def test_discovery_joins_by_its_pair(campaign: Campaign) -> None:
    window = window_of(campaign, TOKEN, FORWARDED)
    one = release_of(campaign, "analyze", Loss(0.05, 1e-8), TOKEN, "client")
    counts = replace(one, state="committed", committed_at=stamp(NOW), window=window)
    found = replace(counts, hop="discover", epsilon=0.5, delta=1e-9, window=None)
    assert window is not None
    limit = Limit("small", 5.0, DELTA, None, stamp(NOW), "joint")
    both = [counts, found] * 5
    assert spent(limit, both, both).epsilon == joint_epsilon([window, Loss(0.5, 1e-9)] * 5, DELTA)
    # A second campaign file in a period may follow from results: sums.
    other = replace(counts, fingerprint="ee")
    assert balance(limit, [*both, other], NOW).spent.composition == "basic"


@pytest.mark.long
def test_a_limit_of_fixed_parameters_allows_more_windows(campaign: Campaign) -> None:
    """What status and doctor say is left: they try as many releases as they announce."""
    window, cost = window_of(campaign, TOKEN, FORWARDED), Loss(0.03, 1e-8)
    one = release_of(campaign, "analyze", cost, TOKEN, "client")
    made = replace(one, state="committed", committed_at=stamp(NOW), window=window)
    sums = Limit("small", 0.3, DELTA, None, stamp(NOW))
    jointly = replace(sums, composition="joint")
    assert [_passes(sums, [], [made] * number, NOW) for number in (10, 11)] == [False, True]
    assert [_passes(jointly, [], [made] * number, NOW) for number in (20, 400)] == [False, True]


@pytest.mark.long
def test_a_lost_ledger_gets_its_curves_back_from_what_its_releases_state(
    ledger: Path,
    campaign: Campaign,
    tmp_path: Path,
) -> None:
    set_limit(ledger, "small", 5.0, DELTA, None, fixed=True)
    said = [release(ledger, campaign, batch(tmp_path, f"window-{number}")) for number in range(3)]
    # Of two releases under one key only the larger cost is stated, and no curve is of it.
    said[0]["charged"]["epsilon"] *= 1.5
    summaries = [{"ledger": one, "accepted": FORWARDED, "page": "more"} | TOKEN.data() for one in said]
    notes = [note for note in map(noted, summaries) if note is not None]
    assert len(notes) == 3
    assert all("page" not in note for note in notes)
    lost = tmp_path / "lost.db"
    assert put_back(lost, "small", [proof_of(note, campaign, "summary.json") for note in notes]) is None
    before, after = charges(ledger), charges(lost)
    assert [charge.window for charge in after] == [None, *(charge.window for charge in before[1:])]
    assert [charge.epsilon for charge in after[1:]] == [charge.epsilon for charge in before[1:]]
    assert account(lost).limit == account(ledger).limit
    assert account(lost).spent.composition == "joint"
