"""Guessing with the help of a real evaluator: what a guesser gets out of it, what that costs, and when it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcount.discovery.oblivious import Ask, Unanswered, evaluations_of
from hushcount.discovery.pairs import HASH_BYTES, name_of
from hushcount.many_clients import ManyClients
from keys.directories import campaign_key
from tests.evaluator.running import (
    VERIFIER,
    ask,
    destroy_evaluator_key,
    evaluating,
    make_asked_site,
    manifests,
    public_key,
)
from tests.shuffler.collector.running import LENGTH, Running, Site, wait_for

LIMIT = 20
GUESSES = [f"guess {number}" for number in range(LIMIT)]


def asking(evaluator: Running, token: str) -> Ask:
    """Return how a client with a token asks."""

    def answered(blinded: bytes) -> bytes:
        answer = ask(evaluator, blinded, {"client-token": token})
        if answer.status_code != 200:
            raise Unanswered(answer.text)
        return answer.content

    return answered


def stored(site: Site, evaluator: Running, value: str) -> set[bytes]:
    """Return the hashes that the auxiliary server stores of 20 honest clients, which all hold one value."""
    campaign = site.campaign()
    client = ManyClients(campaign, ask=asking(evaluator, "h" * 16))
    key = campaign_key(site.base / "keys", "aux_server", campaign.keys.aux_server).read()
    opened = [key.open(bytes(report)) for report in client.discovery_reports([value] * LIMIT)]
    return {plain[16 : 16 + HASH_BYTES] for plain in opened if plain is not None}


def found_among(site: Site, evaluator: Running, guesses: list[str], token: str, held: set[bytes]) -> list[str]:
    """Return the guesses that a client finds among stored hashes: by one evaluation each, as it may ask."""
    form = site.campaign().discovery_format
    evaluations = evaluations_of([form.input(guess) for guess in guesses])
    outputs = evaluations.finish(asking(evaluator, token)(evaluations.blinded), public_key(site))
    return [guess for guess, output in zip(guesses, outputs, strict=True) if name_of(output).hash in held]


def answered(evaluator: Running, headers: dict[str, str], evaluations: int = 1) -> bool:
    """Return whether evaluations were answered; if they were not, because the key is destroyed."""
    status = ask(evaluator, evaluations_of([None] * evaluations).blinded, headers).status_code
    assert status in (200, 410)
    return status == 200


def test_a_guess_costs_one_evaluation_of_a_few_and_none_is_answered_after_the_key(tmp_path: Path) -> None:
    """A client with the auxiliary server's stored hashes. The limit is of a token; who invents some is only counted."""
    site = make_asked_site(tmp_path)
    with evaluating(site) as evaluator:
        held = stored(site, evaluator, GUESSES[7])
        assert len(held) == 1
        assert found_among(site, evaluator, GUESSES, "g" * 16, held) == [GUESSES[7]]
        with pytest.raises(Unanswered, match="too_many_evaluations"):
            found_among(site, evaluator, ["one more"], "g" * 16, held)
        for invented in range(5):
            assert found_among(site, evaluator, GUESSES, f"invented-token-{invented}", held) == [GUESSES[7]]
        # The analyzer's token allows more: it is a secret of the analyzer, who knows what was released anyway.
        assert answered(evaluator, VERIFIER, LIMIT + 1)
        evaluator.pass_by(LENGTH)
        wait_for(lambda: manifests(site))
        # 20 reports of honest clients, and 140 evaluations: who compares the two may see that somebody guesses. It does
        # not show if the guesser posts a report for each evaluation.
        (first,) = manifests(site)
        assert (first.clients.evaluations, first.clients.refused) == (7 * LIMIT, {"too_many_evaluations": 1})
        assert first.verifier.evaluations == LIMIT + 1
        assert found_among(site, evaluator, GUESSES, "g" * 16, held) == [GUESSES[7]]
        destroy_evaluator_key(site)
        wait_for(lambda: not answered(evaluator, VERIFIER))
        assert not answered(evaluator, {"client-token": "n" * 16})
