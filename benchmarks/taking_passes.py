"""CPU of taking passes at a collector: the first post of a pass, and further ones, beside the bare verification.

python -m benchmarks.taking_passes
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from datetime import date

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.hashes import SHA384

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import DAY_SECONDS, PassesPart
from hushcount.passes.slots import slot_at
from hushcount.passes.tokens import Token, key_id_of, message_of
from service.authentication import PrivacyPass
from service.passes import Passes


def microseconds(work: Callable[[int], object], number: int) -> float:
    """Return the CPU of one piece of work, in microseconds."""
    began = time.process_time()
    for place in range(number):
        work(place)
    return (time.process_time() - began) / number * 1e6


def lines(number: int) -> Sequence[str]:
    """Return what is printed: CPU in microseconds."""
    key = rsa.generate_private_key(65537, 2048)
    modulus = key.public_key().public_numbers().n.to_bytes(256, "big")
    part = PassesPart(seconds=DAY_SECONDS, first=date(2026, 11, 28), days=("0" * 64,))
    campaign = Campaign.model_construct(id="words", passes=part, collectors=("one",), discovery=None)
    now = time.time()
    slot = slot_at(campaign, "collector", "one", now)
    passes, padding = Passes(campaign, "collector", "one", {slot: modulus}), PSS(MGF1(SHA384()), 48)
    tokens = []
    for _ in range(number):
        signed = message_of(os.urandom(32), slot, key_id_of(modulus))
        tokens.append(Token(signed[2:34], signed[34:66], signed[66:], key.sign(signed, padding, SHA384())))
    headers, way, public = [one.header.encode() for one in tokens], PrivacyPass(), key.public_key()
    boxes = [(token.signature, token.signed, padding, SHA384()) for token in tokens]
    bare = microseconds(lambda place: public.verify(*boxes[place]), number)
    first = microseconds(lambda place: way.client(headers[place], passes, now), number)
    further = microseconds(lambda place: way.client(headers[place], passes, now), number)
    return (
        f"bare verification   {bare:6.1f} us",
        f"first post          {first:6.1f} us",
        f"further post        {further:6.1f} us",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passes", type=int, default=2000)
    print("\n".join(lines(parser.parse_args().passes)))
