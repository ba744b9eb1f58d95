"""A mix's dummies in a job are sealed to the keys that clients used."""

from __future__ import annotations

import pytest

from hushcount.campaigns.public_keys import NoValidKey, valid_key
from hushcount.clock import MACHINE
from pipelines.jobs.dummies import form_of
from tests.support.clocks import Hands, machine_shows
from tests.support.noise_campaigns import noise_campaign


def test_a_window_is_mixed_after_the_keys_of_its_clients_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = noise_campaign()
    before = form_of(campaign, 0)
    machine_shows(monkeypatch, Hands(MACHINE.seconds() + 400 * 86_400))
    with pytest.raises(NoValidKey):
        valid_key(campaign.keys.analyzer)
    assert form_of(campaign, 0) == before
