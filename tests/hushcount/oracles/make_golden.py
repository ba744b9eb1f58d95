"""Golden vectors: what seeded clients send and what it adds up to, and reports that must be refused.

Run by hand, and only when the wire format or the draws are meant to change: reports that deployed clients send would
no longer be read otherwise.

    python -m tests.hushcount.oracles.make_golden
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hushcount.oracles.mechanism import Mechanism
from hushcount.wire.fields import SubsetOf, report_codes
from tests.hushcount.oracles.cases import CASES, Case
from tests.support.words import SeededWords

FOLDER = Path(__file__).parent / "golden"
WORDS_SEED = 2026


def vector(case: Case) -> dict[str, Any]:
    """Return a case's golden vector, as JSON data."""
    mechanism = case.mechanism
    clients = np.tile(case.items, 2)
    reports = mechanism.encode(clients, SeededWords(WORDS_SEED))
    tally = mechanism.new_tally(case.items)
    mechanism.accumulate(tally, reports, case.items)
    wire = [row.tobytes() for row in mechanism.pack(reports)]
    return {
        "system": case.oracle,
        "epsilon": case.epsilon,
        "domain": case.domain,
        "parameters": dict(case.parameters),
        "keep": str(mechanism.responder.keep),
        "report_bytes": mechanism.report_bytes,
        "words_seed": WORDS_SEED,
        "items": [str(item) for item in clients],
        "reports": [row.hex() for row in wire],
        "scores": mechanism.encoder.scores(tally, case.items, case.items).tolist(),
        "malformed": malformed(mechanism, wire[0]),
    }


def malformed(mechanism: Mechanism, good: bytes) -> list[dict[str, str]]:
    """Return reports made from a good one, each with one thing wrong."""
    found = [("one byte short", good[:-1]), ("one byte long", good + b"\0"), ("empty", b"")]
    codes, length = report_codes(mechanism.fields), len(good)
    if codes < 256**length:
        found.append(("one above the largest integer of a report", codes.to_bytes(length, "little")))
        found.append(("all bits set", b"\xff" * length))
    for field in mechanism.fields:
        if isinstance(field, SubsetOf) and field.form == "bitmap":
            found += _spoilt_bitmap(field, codes, good)
    return [{"wrong": wrong, "report": octets.hex()} for wrong, octets in found]


def _spoilt_bitmap(field: SubsetOf, codes: int, good: bytes) -> list[tuple[str, bytes]]:
    """Change the bitmap, which is the part above the digits of all numbers."""
    digits = codes >> field.bound
    whole = int.from_bytes(good, "little")
    bits = whole // digits
    lowest = bits & -bits
    clear = next(1 << place for place in range(field.bound) if not bits >> place & 1)
    spoilt = [
        ("one cell too few", whole - lowest * digits),
        ("one cell too many", whole + clear * digits),
        ("no cell", whole % digits),
    ]
    return [(f"{field.name}: {wrong}", integer.to_bytes(len(good), "little")) for wrong, integer in spoilt]


def main() -> None:
    """Write every vector anew."""
    FOLDER.mkdir(exist_ok=True)
    for case in CASES:
        (FOLDER / f"{case.name}.json").write_text(json.dumps(vector(case), indent=1) + "\n")


if __name__ == "__main__":
    main()
