"""Campaigns with keyed and oblivious names, what parties store of them, and two ways to test a guess."""

from __future__ import annotations

from collections.abc import Iterator

from hushcount.campaigns.campaign import Campaign
from hushcount.discovery.oblivious import Ask
from hushcount.discovery.pairs import DiscoveryFormat, name_of
from hushcount.many_clients import ManyClients
from hushcount.wire.sealing import Sealer
from keys.evaluating import EvaluatorKey
from tests.hushcount.campaigns.test_campaign_file import WORDS, data, listed
from tests.hushcount.test_client import ANALYZER, AUX_SERVER

EVALUATOR, ANOTHER = EvaluatorKey(bytes([7]) * 32), EvaluatorKey(bytes([8]) * 32)
SENT = ["rare disease", "rare disease", "three", "another secret", "", "ten"]
NEW = ["rare disease", "another secret", "ten"]
GUESSES = [*NEW, "three", "wrong guess"]


def oblivious(key: EvaluatorKey = EVALUATOR, **changes: object) -> Campaign:
    """Return the campaign of the other audits, with an evaluator in place of the hash key."""
    made = data()
    del made["discovery"]["hash_key"]
    made["discovery"]["hash"] = "oblivious"
    made["keys"]["evaluator"] = [listed(key)]
    return Campaign.model_validate({**made, **changes})


KEYED, OBLIVIOUS = Campaign.model_validate(data()), oblivious()


def client_of(campaign: Campaign, ask: Ask | None = None) -> ManyClients:
    return ManyClients(campaign, dictionary=WORDS, ask=ask)


def sent(campaign: Campaign, ask: Ask = EVALUATOR.evaluate, values: list[str] = SENT) -> list[bytes]:
    """Return the discovery reports of a client for each value, sealed."""
    made = client_of(campaign, ask if campaign.is_oblivious else None).discovery_reports(list(values))
    return [bytes(row) for row in made]


def stored(campaign: Campaign, sealed: list[bytes]) -> list[bytes]:
    """Return the pairs that the auxiliary server stores: hash and box, which it cannot open."""
    opened = [AUX_SERVER.open(report) for report in sealed]
    return [plain[len(campaign.binding("discovery")) :] for plain in opened if plain is not None]


def by_a_clients_file(campaign: Campaign) -> Iterator[bytes]:
    """Yield every hash and every box of the guesses that the campaign file gives the means to make."""
    form, sealer = campaign.discovery_format, Sealer(ANALYZER.public_key)
    known = [form.hash_key, bytes(32), campaign.fingerprint, form.binding]
    known += [bytes.fromhex(key.key) for key in campaign.keys.evaluator]
    for guess in GUESSES:
        for key in known:
            named = DiscoveryFormat(form.binding, key, form.max_value_bytes)
            yield named.hash(guess)
            yield sealer.seal_alike(form.binding + form.pad(guess), key)
            for made in (name_of(key), name_of(named.hash(guess)), name_of(form.input(guess).ljust(64)[:64])):
                yield made.hash
                yield sealer.seal_alike(form.binding + form.pad(guess), made.box_key)


def by_the_evaluators_key(campaign: Campaign, key: EvaluatorKey, guesses: list[str] = GUESSES) -> dict[str, bytes]:
    """Return the hash of each guess, as who has an evaluator's key makes it, without asking."""
    form = campaign.discovery_format
    outputs = key.outputs([form.input(guess) for guess in guesses])
    return {guess: name_of(output).hash for guess, output in zip(guesses, outputs, strict=True)}


def recording(asked: list[bytes], key: EvaluatorKey = EVALUATOR) -> Ask:
    """Return an evaluator that remembers all that it is asked."""

    def ask(blinded: bytes) -> bytes:
        asked.append(blinded)
        return key.evaluate(blinded)

    return ask
