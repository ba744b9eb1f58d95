"""Words to reports: what one client makes of one item with given words, before it is sealed."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushcount.oracles.catalogue import build
from hushcount.oracles.mechanism import Mechanism
from hushcount.wire.fields import SubsetOf, report_codes
from tests.hushcount.oracles.cases import NAMED, SEED, Case
from tests.vectors.subjects.draws import draws
from tests.vectors.subjects.script import Script, word

_LARGEST = (1 << 53) - 1
_LONG = 100
"""A report of more words gets two entries only."""
MORE = (
    Case("gcms-1024-1024", "gcms", 1.0, None, {"k": 1024, "m": 1024, "s": 275, "seed": SEED}),
    Case("hcms-as-planned", "hcms", 4.0, None, {"k": 65_536, "m": 1024, "seed": SEED}),
    Case("olh-open", "olh", 1.0, None, {"B": 4}),
    Case("grr-a-thousand", "grr", 8.0, 1000),
)


def written(parameters: Any) -> dict[str, Any]:
    """Return parameters as a campaign file has them: an integer that a double cannot hold is a string."""
    return {
        key: str(value) if isinstance(value, int) and value > _LARGEST else value for key, value in parameters.items()
    }


def mechanism_of(case: Case) -> dict[str, Any]:
    """Return the mechanism of a case as a campaign file says it; `domain` counts "other", null is the open domain."""
    made = case.mechanism
    return {
        "name": case.name,
        "mechanism": {"name": case.oracle, "epsilon": case.epsilon, "parameters": written(case.parameters)},
        "domain": case.domain,
        "report_bytes": made.report_bytes,
    }


def report(case: Case, item: int, words: list[int]) -> bytes:
    """Return what `Client.report` seals of an item; every word is taken."""
    script = Script(words)
    mechanism = case.mechanism
    packed = mechanism.pack(mechanism.encode(np.array([item], dtype=np.uint64), script)).tobytes()
    assert not script.left, f"{case.name}: {script.left} words too many"
    return packed


def _entries(case: Case) -> list[dict[str, Any]]:
    items = case.items.tolist()
    chosen = [(items[0], "ones"), (items[-1], "kept"), (items[len(items) // 2], "turned"), (items[-1], "zeros")]
    made = []
    for item, edge in chosen:
        words = [
            one
            for place, draw in enumerate(draws(case.mechanism, item))
            for one in draw.words(edge, case.name, edge, place)
        ]
        if len(words) > _LONG and edge in ("kept", "zeros"):
            continue
        drawn = [f"{one:016x}" for one in words]
        made.append(
            {"mechanism": case.name, "item": str(item), "words": drawn, "report": report(case, item, words).hex()}
        )
    return made


def _refused(case: Case) -> list[dict[str, Any]]:
    """Return reports that nobody may believe."""
    mechanism = case.mechanism
    good = bytes.fromhex(_entries(case)[0]["report"])
    found = malformed(mechanism, good)
    codes, length = report_codes(mechanism.fields), len(good)
    above = [codes + word(case.name, number) % (256**length - codes) for number in range(2) if codes < 256**length]
    found += [("not_below_answers", integer.to_bytes(length, "little")) for integer in sorted(above)]
    return [{"mechanism": case.name, "report": one.hex(), "reason": reason} for reason, one in dict.fromkeys(found)]


def malformed(mechanism: Mechanism, good: bytes) -> list[tuple[str, bytes]]:
    """Return reports made from a good one, each with one thing wrong, and the reason to refuse it."""
    found = [("wrong_length", wrong) for wrong in (good[:-1], good + b"\0", b"")]
    codes, length = report_codes(mechanism.fields), len(good)
    if codes < 256**length:
        found += [("not_below_answers", wrong) for wrong in (codes.to_bytes(length, "little"), b"\xff" * length)]
    for field in mechanism.fields:
        if isinstance(field, SubsetOf) and field.form == "bitmap":
            found += [("wrong_number_of_cells", wrong) for wrong in _spoilt_bitmaps(field, codes, good)]
    return found


def _spoilt_bitmaps(field: SubsetOf, codes: int, good: bytes) -> list[bytes]:
    """Return the report with a cell too few, one too many and none: the bitmap is above the digits of all numbers."""
    digits = codes >> field.bound
    whole = int.from_bytes(good, "little")
    bits = whole // digits
    lowest = bits & -bits
    clear = next(1 << place for place in range(field.bound) if not bits >> place & 1)
    spoilt = (whole - lowest * digits, whole + clear * digits, whole % digits)
    return [integer.to_bytes(len(good), "little") for integer in spoilt]


def cases() -> list[Case]:
    """Return the mechanisms of the vectors: every line of the catalogue, small and as it is planned."""
    return [*NAMED, *MORE]


def data() -> dict[str, Any]:
    """Return the file's content."""
    for case in cases():
        assert build(case.oracle, case.epsilon, case.domain, case.parameters) == case.mechanism
    return {
        "subject": "reports",
        "about": "One client's item and 64-bit words, in the order in which they are taken, to its packed report",
        "mechanisms": [mechanism_of(case) for case in cases()],
        "accept": [entry for case in cases() for entry in _entries(case)],
        "refuse": [entry for case in cases() for entry in _refused(case)],
    }
