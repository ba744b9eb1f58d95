"""What a curious issuer and collector find together about who used which pass: `python -m experiments.linking`.

Clients ask for passes of one slot and show them later. The two parties pair the issuer's requests with the collector's
posts, and each attempt is printed with the share of clients that it links. Chance links one client on average.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

import numpy as np
from cryptography.hazmat.primitives.asymmetric import rsa

from hushcount.arrays import FloatArray
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import DAY_SECONDS, PassesPart
from hushcount.delivery.passes import Pending, finished, pending
from hushcount.errors import UsageError
from hushcount.oracles.simulation import SeededWords
from hushcount.passes.blind_signatures import EXPONENT, KEY_BYTES
from hushcount.passes.pass_keys import checked_day, day_digest
from hushcount.passes.slots import Slot
from hushcount.passes.tokens import REQUEST_BYTES, Token, read_header
from hushcount.randomness import SystemWords

_SLOT = Slot("words", "collector", "one", 0)
_ADDRESS = 4
"""Clients that share an address."""


@dataclass(frozen=True)
class Seen:
    """What the two parties have: the key, the requests, and the passes in the same order, which they do not know."""

    modulus: int
    secret_exponent: int
    requests: tuple[Pending, ...]
    answers: tuple[bytes, ...]
    tokens: tuple[Token, ...]


def seen(clients: int) -> Seen:
    """Let clients ask for one pass each, and show it."""
    key = rsa.generate_private_key(EXPONENT, 8 * KEY_BYTES).private_numbers()
    modulus, octets = key.public_numbers.n, key.public_numbers.n.to_bytes(KEY_BYTES, "big")
    asked = tuple(pending(SystemWords().words(4).tobytes(), _SLOT, octets) for _ in range(clients))
    answers = tuple(pow(_blinded(one), key.d, modulus).to_bytes(KEY_BYTES, "big") for one in asked)
    tokens = tuple(finished(one, answer) for one, answer in zip(asked, answers, strict=True))
    return Seen(modulus, key.d, asked, answers, tokens)


def fitting(of: Seen) -> int:
    """Return how many pairs of a request and a pass have a blinding that explains both."""
    fits = 0
    for one in of.requests:
        for token in of.tokens:
            message = pow(int.from_bytes(token.signature, "big"), EXPONENT, of.modulus)
            blinding = pow(_blinded(one) * pow(message, -1, of.modulus), of.secret_exponent, of.modulus)
            fits += pow(blinding, EXPONENT, of.modulus) * message % of.modulus == _blinded(one)
    return fits


def marked(of: Seen) -> int:
    """Return how many keys of their own, and wrong signatures, clients take as marks: two tries a client."""
    octets, taken = of.modulus.to_bytes(KEY_BYTES, "big"), 0
    part = PassesPart(seconds=DAY_SECONDS, first=date(1970, 1, 1), days=(day_digest(octets).hex(),))
    campaign = Campaign.model_construct(id="words", passes=part, collectors=("one",), discovery=None)
    for number, (one, answer) in enumerate(zip(of.requests, of.answers, strict=True)):
        own = (of.modulus + 2 * number + 2).to_bytes(KEY_BYTES, "big")
        wrong = bytes([answer[0] ^ 1]) + answer[1:]
        for attempt in (partial(checked_day, campaign, date(1970, 1, 1), own), partial(finished, one, wrong)):
            try:
                attempt()
                taken += 1
            except (UsageError, ValueError):
                pass
    return taken


def linked_by_time(asked: FloatArray, used: FloatArray) -> float:
    """Return the share of clients for which the post with the nearest time, in seconds, to their request is theirs."""
    nearest = np.abs(asked[:, None] - used[None, :]).argmin(1)
    return float((nearest == np.arange(len(asked))).mean())


def lines(clients: int, seed: int, devices: int = 1000) -> Iterator[str]:
    """Yield what is printed."""
    of = seen(clients)
    yield f"{clients} clients, one pass each; chance links {1 / clients:.2%}"
    yield f"algebra: {fitting(of):,} of {clients**2:,} pairs have a blinding that explains both, so all fit equally"
    yield f"own keys and wrong signatures: {marked(of)} of {2 * clients} were taken"
    yield f"sizes: {_different(len(one.request) for one in of.requests)} of requests, {_headers(of)} of headers"
    words = SeededWords(seed, 0)
    second, use = _seconds(words, devices), _seconds(words, devices)
    yield f"times of {devices:,} clients; chance links {1 / devices:.2%}"
    yield f"time, devices always on: {linked_by_time(second, use):.2%} linked"
    evening = _seconds(words, devices)
    on = 3_600.0  # a device is on for an hour each day, and asks when it is next on
    asks = np.where((second >= evening) & (second < evening + on), second, evening)
    habit = linked_by_time(asks, evening + _seconds(words, devices) / DAY_SECONDS * on)
    yield f"habits, devices on for one hour of the day: {habit:.2%} linked"
    yield f"first day, asked and used within 10 minutes: {linked_by_time(use, use + second / 144):.2%} linked"
    yield f"equal addresses, {_ADDRESS} clients each: {1 / _ADDRESS:.2%} linked, by arithmetic"


def _seconds(words: SeededWords, clients: int) -> FloatArray:
    return words.words(clients) / 2.0**64 * DAY_SECONDS


def _blinded(one: Pending) -> int:
    return int.from_bytes(one.request[REQUEST_BYTES - KEY_BYTES :], "big")


def _headers(of: Seen) -> str:
    assert all(read_header(token.header.encode()) == token for token in of.tokens)  # noqa: S101
    return _different(len(token.header) for token in of.tokens)


def _different(sizes: Iterator[int] | Sequence[int]) -> str:
    return f"{len(set(sizes))} size"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=30)
    for line in lines(parser.parse_args().clients, 1):
        print(line)
