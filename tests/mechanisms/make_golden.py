"""Golden vectors: what seeded clients send and what it adds up to, and reports that must be refused.

Run by hand, and only when the wire format or the draws are meant to change: reports that deployed clients send would
no longer be read otherwise.

    python -m tests.mechanisms.make_golden
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hushcount.fields import Field
from hushcount.mechanism import Mechanism
from tests.mechanisms.cases import CASES, Case
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
        "system": case.system,
        "epsilon": case.epsilon,
        "domain": case.domain,
        "parameters": dict(case.parameters),
        "keep": str(mechanism.responder.keep),
        "report_bytes": mechanism.report_bytes,
        "words_seed": WORDS_SEED,
        "items": [str(item) for item in clients],
        "reports": [row.hex() for row in wire],
        "support": mechanism.encoder.support_counts(tally, case.items, case.items).tolist(),
        "malformed": malformed(mechanism, wire[0]),
    }


def malformed(mechanism: Mechanism, good: bytes) -> list[dict[str, str]]:
    """Return reports made from a good one, each with one thing wrong."""
    found = [
        {"wrong": "one byte short", "report": good[:-1].hex()},
        {"wrong": "one byte long", "report": (good + b"\0").hex()},
        {"wrong": "empty", "report": ""},
    ]
    offset = 0
    for field in mechanism.fields:
        before, after = good[:offset], good[offset + field.wire_bytes :]
        here = good[offset : offset + field.wire_bytes]
        found += [
            {"wrong": f"{field.name}: {wrong}", "report": (before + octets + after).hex()}
            for wrong, octets in _spoilt(field, here)
        ]
        offset += field.wire_bytes
    return found


def _spoilt(field: Field, good: bytes) -> list[tuple[str, bytes]]:
    if field.as_bitmap:
        return _spoilt_bitmap(field, good)
    size, top = field.value_bytes, field.bound
    spoilt = []
    if top < 1 << (8 * size):
        spoilt = [
            (f"{top}, the largest is {top - 1}", good[:-size] + top.to_bytes(size, "little")),
            (f"all bits set, the largest is {top - 1}", good[:-size] + b"\xff" * size),
        ]
    if field.least:
        spoilt.append((f"0, the least is {field.least}", bytes(size)))
    if field.count > 1:
        values = [good[place : place + size] for place in range(0, len(good), size)]
        spoilt.append(("two values in descending order", b"".join([values[1], values[0], *values[2:]])))
        spoilt.append(("a value twice", b"".join([values[0], values[0], *values[2:]])))
    return spoilt


def _spoilt_bitmap(field: Field, good: bytes) -> list[tuple[str, bytes]]:
    bits = int.from_bytes(good, "little")
    lowest = bits & -bits
    clear = next(1 << place for place in range(field.bound) if not bits >> place & 1)
    spoilt = [
        ("one cell too few", bits ^ lowest),
        ("one cell too many", bits | clear),
        ("no cell", 0),
    ]
    if field.bound % 8:
        spoilt.append(("a padding bit set", bits | 1 << field.bound))
        spoilt.append(("a padding bit instead of a cell", (bits ^ lowest) | 1 << field.bound))
    return [(wrong, value.to_bytes(len(good), "little")) for wrong, value in spoilt]


def main() -> None:
    """Write every vector anew."""
    FOLDER.mkdir(exist_ok=True)
    for case in CASES:
        (FOLDER / f"{case.name}.json").write_text(json.dumps(vector(case), indent=1) + "\n")


if __name__ == "__main__":
    main()
