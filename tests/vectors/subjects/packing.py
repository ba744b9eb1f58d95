"""Fields to the bytes of a report and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hushcount.wire.fields import Bits, Field, Number, SubsetOf, pack, report_bytes, report_codes, report_dtype, unpack
from tests.vectors.subjects.script import word

LAYOUTS: dict[str, tuple[Field, ...]] = {
    "one bit": (Number("column", 2),),
    "one byte": (Number("cell", 256),),
    "one answer more than a byte has": (Number("cell", 257),),
    "a single answer": (Number("row", 1), Number("cell", 3)),
    "digits": (Number("row", 3), Number("column", 8), Number("cell", 2)),
    "a least value": (Number("slope", 6, least=1), Number("shift", 11), Number("cell", 4)),
    "64 bits": (Number("row", 1 << 32), Number("column", 1 << 30), Number("cell", 4)),
    "above 64 bits": (Number("slope", 1 << 60, least=1), Number("shift", (1 << 61) - 1), Number("cell", 8)),
    "pairs": (SubsetOf("cells", 5, 2),),
    "a rank": (Number("row", 3), SubsetOf("cells", 100, 27)),
    "all but one": (SubsetOf("cells", 8, 7),),
    "a list": (Number("row", 64), SubsetOf("cells", 16_384, 72)),
    "a list of cells that are no power of two": (SubsetOf("cells", 12_000, 80),),
    "a bitmap": (SubsetOf("cells", 1600, 430),),
    "nine bits": (Number("row", 5), Bits("bits", 9)),
    "eight bits": (Bits("bits", 8),),
    "seventy bits": (Bits("bits", 70),),
}


def described(name: str, fields: Sequence[Field]) -> dict[str, Any]:
    """Return a layout's fields with their bounds, and how many answers its integer is below."""
    parts: list[dict[str, Any]] = []
    for field in fields:
        if isinstance(field, Number):
            parts.append({"kind": "number", "bound": str(field.bound), "least": field.least})
        elif isinstance(field, SubsetOf):
            parts.append({"kind": "subset", "bound": str(field.bound), "count": field.count, "form": field.form})
        else:
            parts.append({"kind": "bits", "count": field.count})
    codes = f"{report_codes(fields):x}"
    return {"name": name, "fields": parts, "integers_below": codes, "report_bytes": report_bytes(fields)}


def _values(field: Field, number: int, name: str) -> Any:
    """Return the least, the greatest, or a drawn value of a field."""
    if isinstance(field, Number):
        drawn = word(name, field.name, number) % field.values + field.least
        return str([field.least, field.bound - 1, drawn][min(number, 2)])
    if isinstance(field, Bits):
        drawn = sum(1 << place for place in range(field.count) if word(name, number, place) % 3 == 0)
        size = (field.count + 7) // 8
        return [0, (1 << field.count) - 1, drawn][min(number, 2)].to_bytes(size, "little").hex()
    cells = sorted(range(field.bound), key=lambda cell: word(name, number, cell))[: field.count]
    ends = [range(field.count), range(field.bound - field.count, field.bound)]
    return list([*ends, sorted(cells)][min(number, 2)])


def packed(fields: Sequence[Field], values: Sequence[Any]) -> bytes:
    """Return the bytes of one report with these values."""
    report = np.zeros(1, dtype=report_dtype(fields))
    for field, value in zip(fields, values, strict=True):
        if isinstance(field, Number):
            report[field.name] = int(value)
        else:
            report[field.name] = np.frombuffer(bytes.fromhex(value), np.uint8) if isinstance(field, Bits) else value
    return pack(fields, report).tobytes()


def _accepted(name: str, fields: Sequence[Field]) -> list[dict[str, Any]]:
    several = [[_values(field, number, name) for field in fields] for number in range(4)]
    kept = [values for number, values in enumerate(several) if values not in several[:number]]
    if any(isinstance(field, SubsetOf) and field.count > 100 for field in fields):
        kept = kept[2:]
    return [{"layout": name, "values": values, "packed": packed(fields, values).hex()} for values in kept]


def _refused(name: str, fields: Sequence[Field]) -> list[dict[str, Any]]:
    good = bytes.fromhex(_accepted(name, fields)[0]["packed"])
    codes, length = report_codes(fields), len(good)
    found = [("wrong_length", good[:-1]), ("wrong_length", good + b"\0")]
    last = 256**length - 1
    found += [
        ("not_below_answers", one.to_bytes(length, "little"))
        for one in (codes, codes + 1, last)
        if codes <= one <= last
    ]
    big = fields[-1]
    if isinstance(big, SubsetOf) and big.form != "rank":
        digits = codes >> (big.count * (big.bound - 1).bit_length() if big.form == "list" else big.bound)
        found += [(reason, (above * digits).to_bytes(length, "little")) for reason, above in _spoilt(big)]
    made = {}
    for reason, octets in found:
        if reason != "wrong_length":
            assert not unpack(fields, np.frombuffer(octets, np.uint8)[None])[1][0], (name, reason)
        made[octets] = {"layout": name, "packed": octets.hex(), "reason": reason}
    return list(made.values())


def _spoilt(field: SubsetOf) -> list[tuple[str, int]]:
    """Return integers of a list or a bitmap that are of no subset."""
    if field.form == "bitmap":
        sizes = {"one fewer": field.count - 1, "one more": field.count + 1, "none": 0, "all": field.bound}
        return [("wrong_number_of_cells", (1 << size) - 1) for size in sizes.values()]
    bits = (field.bound - 1).bit_length()
    cells = list(range(7, 7 + field.count))
    swapped = [cells[1], cells[0], *cells[2:]]
    twice = [*cells[:-1], cells[-2]]
    found = [("not_ascending", swapped), ("not_ascending", twice), ("not_ascending", [0] * field.count)]
    if field.bound < 1 << bits:
        found.append(("cell_out_of_range", [*cells[:-1], field.bound]))
    return [(reason, sum(cell << bits * place for place, cell in enumerate(row))) for reason, row in found]


def data() -> dict[str, Any]:
    """Return the file's content."""
    return {
        "subject": "packing",
        "about": "The values of a report's fields to its bytes and back; a subset's cells ascend, bits are bytes",
        "layouts": [described(name, fields) for name, fields in LAYOUTS.items()],
        "accept": [entry for name, fields in LAYOUTS.items() for entry in _accepted(name, fields)],
        "refuse": [entry for name, fields in LAYOUTS.items() for entry in _refused(name, fields)],
    }
