"""A client whose budget is spent, audited: no report of it tells two values apart; one that ignores it is caught."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pytest

from hushcount.allowance import Allowance
from hushcount.budget import Budget
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.client import Client
from hushcount.memory import ClientMemory
from hushcount.policy import Policy
from tests.audits.auditor import Looks, audit
from tests.audits.campaigns import ANALYZER, AUX_SERVER, DICTIONARY, EPSILON, VALUES, campaign_of
from tests.audits.looks import joined, opened, seen
from tests.support.statistics import FAILURE

REPORTS, AT_ONCE = 6_000, 1_000
"""Of each input, and of a window, the greatest cap. A tenth of epsilon is then found with probability 1 - 1e-6."""
FOUND = 0.1 * EPSILON


@dataclass(frozen=True)
class IgnoresItsBudget(Client):
    """Charges, and sends the value all the same."""

    def _charged(self, stream: Stream, number: int, due: datetime | None = None) -> int:
        super()._charged(stream, number, due)
        return number


def client_of(kind: type[Client], lifetime: float, remembering: bool = False) -> Client:
    parts = campaign_of("ais").model_dump(mode="json")
    parts["shuffle"]["cap"] = AT_ONCE
    parts["discovery"]["delta"] = 0.01
    parts["discovery"]["epsilon"] = 4.0
    return kind(
        Campaign.model_validate({**parts, "memory": remembering}),
        policy=Policy.trusting(),
        dictionary=DICTIONARY,
        memory=ClientMemory() if remembering else None,
        budget=Budget(lifetime=lifetime),
    )


def analyzed(client: Client, value: str) -> Looks:
    """Return the analyzer's looks at so many reports of a value, sent over many windows."""
    windows = (replace(client, allowance=Allowance()) for _ in range(REPORTS // AT_ONCE))
    return joined([seen(client, VALUES, opened(each, ANALYZER, value, AT_ONCE)) for each in windows])


def discovered(client: Client, value: str) -> Looks:
    """Return what both parties together see of discovery reports: the value inside, and whose hash it has."""
    form, labels = client.campaign.discovery_format, []
    for row in client.discovery_reports([value] * 500):
        pair = AUX_SERVER.open(row.tobytes())
        assert pair is not None
        plain = ANALYZER.open(pair[16 + 32 :])
        assert plain is not None
        inside, bin_hash = form.unpad(plain[16:]), pair[16:48]
        labels.append([inside is not None, *(bin_hash == form.hash(each) for each in VALUES)])
    return {"opened": np.array(labels, dtype=np.int64) @ np.array([1, 2, 4])}


@pytest.mark.long(but=("False",))
@pytest.mark.parametrize("remembering", [False, True])
def test_of_a_spent_budget_two_values_cannot_be_told_apart(remembering: bool) -> None:
    """Nor can they from an honest client's unlisted value; four audits, failure probability 1e-6 together."""
    client = client_of(Client, 0.0, remembering)
    first, second = (analyzed(client, value) for value in VALUES)
    assert audit(first, second, FAILURE / 4).epsilon <= 0.0
    other = analyzed(client_of(Client, 10.0**6), VALUES[1])
    assert audit(first, other, FAILURE / 4).epsilon <= 0.0
    # A memory would give one answer: it is not asked, and that shows.
    assert len(np.unique(first["likelihood"])) > 1
    assert client.spent().epsilon == 0.0


@pytest.mark.long
def test_a_client_that_ignores_its_budget_is_caught() -> None:
    """As is one with a budget that is not spent, so that the audit above would have found something; 1e-6."""
    for client in (client_of(IgnoresItsBudget, 0.0), client_of(Client, 10.0**6)):
        first, second = (analyzed(client, value) for value in VALUES)
        assert FOUND < audit(first, second, FAILURE / 4).epsilon <= EPSILON


def test_discovery_reports_of_a_spent_budget_hold_nothing_and_one_that_ignores_it_is_caught() -> None:
    """Both keys together; a value that no list holds against one that is listed. No failure on right code."""
    spent, ignoring = client_of(Client, 0.0), client_of(IgnoresItsBudget, 0.0)
    assert audit(*(discovered(spent, value) for value in reversed(VALUES)), FAILURE).epsilon <= 0.0
    assert audit(*(discovered(ignoring, value) for value in reversed(VALUES)), FAILURE).epsilon > 2.0
