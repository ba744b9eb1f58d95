"""The CPU time in which an issuer signs a client's passes of a day: `python -m benchmarks.signing_passes --runs 20`.

OpenSSL signs as many messages with the same keys in the same run. It cannot sign blinded messages, so its signatures
are of RSA-PSS; it does the same power, blinds too, and checks the result.
"""

from __future__ import annotations

import argparse
import json
import secrets
import statistics
import time
from collections.abc import Callable

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from hushcount.campaigns.parts import MOST_PASSES_A_DAY
from hushcount.passes.blind_signatures import KEY_BYTES, SALT_BYTES
from keys.issuing import IssuingKey

_HALF = KEY_BYTES // 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="how often a client's day is signed")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measure(given.runs)
    print(json.dumps(found, indent=2) if given.json else ", ".join(f"{name} {ms:.1f}" for name, ms in found.items()))


def measure(runs: int) -> dict[str, float]:
    """Return medians over runs of the milliseconds of CPU for a client's day, and their ratio."""
    openssl = [rsa.generate_private_key(65537, 8 * KEY_BYTES) for _ in range(MOST_PASSES_A_DAY)]
    numbers = [key.private_numbers() for key in openssl]
    ours = [IssuingKey(one.p.to_bytes(_HALF, "big") + one.q.to_bytes(_HALF, "big")) for one in numbers]
    # Below each modulus, because its first bit is 0.
    messages = [bytes([byte[0] & 0x7F]) + byte[1:] for byte in map(secrets.token_bytes, [KEY_BYTES] * len(ours))]
    scheme = padding.PSS(padding.MGF1(hashes.SHA384()), SALT_BYTES)

    def issuer() -> None:
        for key, message in zip(ours, messages, strict=True):
            key.sign(message)

    def limit() -> None:
        for key, message in zip(openssl, messages, strict=True):
            key.sign(message, scheme, hashes.SHA384())

    limit()
    pairs = [(_milliseconds(issuer), _milliseconds(limit)) for _ in range(runs)]
    return {
        "passes": MOST_PASSES_A_DAY,
        "issuer_ms": statistics.median(one for one, _ in pairs),
        "openssl_ms": statistics.median(two for _, two in pairs),
        "ratio": statistics.median(one / two for one, two in pairs),
    }


def _milliseconds(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


if __name__ == "__main__":
    main()
