"""What batches with noise of the mixes cost: the campaign's epsilon once a batch, and jointly the exact curve."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from hushcount.errors import UsageError
from hushcount.maths.count_laws import CountLaw
from hushcount.privacy.composition import Loss
from hushcount.privacy.joint import joint_epsilon
from hushcount.privacy.moved import Moved
from hushcount.privacy.statement import statement, window_of
from hushcount.senders import UNBOUND, Senders
from pipelines.audit.foresight import spent_in
from pipelines.commands.init.planned import budget_for
from pipelines.ledger.charges import Charge, window_in
from pipelines.ledger.charging import charging, cost_of
from pipelines.ledger.overview import describe, set_limit
from pipelines.ledger.stated_charges import noted, proof_of, put_back
from pipelines.outputs.account import Charged
from tests.pipelines.ledger.test_charging import batch, charges, upstream
from tests.support.noise_campaigns import noise_campaign

TOKEN = Senders("client-token")
DELTA = 1e-6


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def charge(ledger: Path, folder: str, manifest: str | None = None) -> Charged:
    """What the mix does between its reservation and its output; with its manifest, what the analyzer does after it."""
    campaign, before = noise_campaign(), replace(upstream(1000), charged=manifest)
    with charging(ledger, campaign, "analyze", before, folder) as reserved:
        made = reserved.commit(cost_of(statement(campaign, 1000, TOKEN), "analyze"), 1000)
    assert isinstance(made, Charged)
    return made


def test_a_batch_costs_the_campaigns_pair_whatever_it_holds(subtests: pytest.Subtests) -> None:
    for reports in (None, 0, 1, 10**6):
        with subtests.test(reports=reports):
            assert cost_of(statement(noise_campaign(), reports, TOKEN), "analyze") == Loss(1.0, 1e-8)
    assert cost_of(statement(noise_campaign(2.0, 1e-6, cap=3), 5, TOKEN), "analyze") == Loss(2.0, 1e-6)
    two = Senders("client-token", 2, 1)
    assert cost_of(statement(noise_campaign(), 5, two), "analyze") == Loss(2.0, Moved(_law(), 2).lost)
    assert cost_of(statement(noise_campaign(cap=2), 5, UNBOUND), "analyze") == Loss(0.5, 1e-8)
    beside = statement(noise_campaign(discovery={"epsilon": 0.5, "delta": 1e-9}), 5, TOKEN)
    assert [cost_of(beside, hop) for hop in ("analyze", "discover")] == [Loss(1.0, 1e-8), Loss(0.5, 1e-9)]


def test_what_the_noise_does_not_hide_is_refused() -> None:
    with pytest.raises(UsageError, match=r"more reports .* than the noise hides: run fewer collectors"):
        cost_of(statement(noise_campaign(), 5, Senders("client-token", 31, 1)), "analyze")


def test_mix_and_analyzer_charge_a_batch_once_and_windows_jointly(ledger: Path, tmp_path: Path) -> None:
    set_limit(ledger, "words", 23.0, DELTA, None, fixed=True)
    for number in range(30):
        made = charge(ledger, batch(tmp_path, f"window-{number}"))
        again = charge(ledger, batch(tmp_path, f"mixed-{number}"), made.manifest)
        assert (made.new, again.new, again.key) == (True, False, made.key)
    made_of, moved = charges(ledger), Moved(_law(), 1)
    assert [one.part for one in made_of] == [moved] * 30
    spent = describe(ledger, "words").accounts["words"].spent
    assert (spent.releases, spent.composition) == (30, "joint")
    assert spent.epsilon == joint_epsilon([moved] * 30, DELTA) == pytest.approx(22.856, abs=1e-3)
    # A lost ledger gets the curves back from what the releases state.
    note = noted({"ledger": replace(made, new=True).data(), "accepted": 1000} | TOKEN.data())
    assert note is not None
    lost = tmp_path / "lost.db"
    put_back(lost, "words", [proof_of(note, noise_campaign(), "summary.json")])
    assert [one.part for one in charges(lost)] == [moved]


def test_a_curve_is_the_same_after_it_was_written(ledger: Path) -> None:
    for cap, senders in ((1, TOKEN), (3, Senders("client-token", 2, 1))):
        window = window_of(noise_campaign(cap=cap), senders, 5)
        one = Charge("", "words", "", 1, "analyze", "", "", "reserved", 1.0, 1e-8, None, None, "client", window=window)
        assert isinstance(window, Moved)
        assert window_in(one.curve) == window


def test_what_is_told_beforehand() -> None:
    assert spent_in(6, noise_campaign()).startswith("each client spends epsilon 1 ")
    found = budget_for(noise_campaign(), timedelta(days=1))
    assert found.epsilon >= 1.1 * found.renew_days


def _law() -> CountLaw:
    noise = noise_campaign().require_frequency().encoder.noise
    assert noise is not None
    return noise.law
