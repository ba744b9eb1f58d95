"""JSON texts and numbers to canonical JSON, and texts that no reader may take."""

from __future__ import annotations

import struct
from typing import Any

from hushcount.errors import FormatError
from hushcount.formats.canonical_json import canonical_json
from hushcount.formats.reading import DEEPEST, parse_json
from tests.vectors.subjects.script import require_refused, word

_NUMBERS = (
    *(0.0, -0.0, 1.0, -1.0, 0.1, 0.5, 100.0, 123456.789, 1 / 3, 4.5, 2e-3, 1e-6, 1e-7, 1.5e-7, 9.999999999999999e-7),
    *(
        5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1e20, 1e21, 1e22, 1e23,
        123456789012345680000.0,
    ),
    *(9007199254740991.0, -9007199254740991.0, 9007199254740992.0, 9007199254740994.0, 295147905179352830000.0),
    *(999999999999999700000.0, 999999999999999900000.0, 333333333.3333332, 333333333.33333325, 1e-5, 0.000123, 1e300),
    *(9.5367431640625e-07, 1.0000000000000002, 0.30000000000000004, 1424953923781206.2, 2.5e-8, 1e-10, 6.02214076e23),
)  # fmt: skip
_TEXTS = (
    "{}",
    "[]",
    "null",
    '""',
    " { } ",
    '{"b":1,"a":2}',
    '{"a":{"d":[3,2,1],"c":null},"B":true,"":false}',
    "[1.0,1e0,10E-1,-0,-0.0,0e5,1.10,100,1e2]",
    "[9007199254740991,-9007199254740991]",
    '{"\\u20ac":"Euro","\\r":"CR","\\ufb33":"dalet","1":"one","\\ud83d\\ude00":"grin","\\u0080":"c","\\u00f6":"o"}',
    '"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/"',
    '"\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\\u0080\\u2028\\u2029\\ufeff"',
    '{"10":1,"9":2,"a1":3,"a":4,"A":5,"_":6,"\\uffff":7,"\\ud800\\udc00":8}',
    '["e\\u0301","\\u00e9"]',
    '{"__proto__":1,"constructor":2,"toString":3}',
    '{"a":"a"}',
    '{"\\u0061":{"a":1},"b":{"a":1}}',
    "\t\r\n [ 1 ,\n 2 ] \n",
    "[" * DEEPEST + "]" * DEEPEST,
    '{"a":' * (DEEPEST - 1) + "[]" + "}" * (DEEPEST - 1),
    '"' + "[{" * 100 + '"',
)
_WRONG: tuple[tuple[str, bytes], ...] = (
    *(
        ("integer_too_large", text)
        for text in (
            b"9007199254740992", b"-9007199254740992", b"[9007199254740993]", b'{"a":18446744073709551616}',
            b"1000000000000000000000", b"-99999999999999999999999999",
        )
    ),
    *(("not_finite", text) for text in (b"1e400", b"[-1e309]", b"1.8e308")),
    *(("lone_surrogate", text) for text in (b'"\\ud800"', b'["a\\udfffb"]', b'{"\\udc00":1}', b'"\\ude00\\ud83d"')),
    *(
        ("duplicate_key", text)
        for text in (
            b'{"a":1,"a":1}', b'{"a":1,"b":2,"a":3}', b'{"a":1,"\\u0061":2}', b'[{"x":{"y":0,"y":0}}]',
            b'{"":1,"":2}', b'{"__proto__":1,"__proto__":2}',
        )
    ),
    *(
        ("too_deep", text)
        for text in (
            b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1),
            b'{"a":' * DEEPEST + b"[]" + b"}" * DEEPEST,
            b"[" * 10_000 + b"]" * 10_000,
            b"[" * 200 + b'"]]"' + b"]" * 200,
        )
    ),
    *(
        ("not_utf8", text)
        for text in (b'"\xff"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\xe2\x82"', b'"\xf4\x90\x80\x80"')
    ),
    *(
        ("not_json", text)
        for text in (
            b"", b" ", b"{", b"]", b'{"a":1,}', b"[1,]", b"[1 2]", b"{a:1}", b"{'a':1}", b"NaN", b"Infinity",
            b"-Infinity", b"01", b"-01", b"+1", b"1.", b".5", b"0x10", b"1e", b"-", b"tru", b"True", b"nul",
            b'"a', b'"\t"', b'"\n"', b'"\\x41"', b'"\\u12"', b"/* */1", b"1//", b"[1] 2", b"\xef\xbb\xbf{}",
            b"\xc2\xa01", b'{"a" 1}', b'{"a":}', b"undefined", b"1_000", b"[1]\0",
        )
    ),
)  # fmt: skip


def _double(value: float) -> dict[str, str]:
    return {"double": struct.pack(">d", value).hex(), "canonical": canonical_json(value).decode()}


def _drawn() -> list[float]:
    """Return numbers of any size, none of them NaN or infinite."""
    words = [word("double", number) for number in range(40)]
    return [struct.unpack(">d", one.to_bytes(8, "big"))[0] for one in words if one >> 52 & 0x7FF != 0x7FF]


def _refused() -> list[dict[str, str]]:
    made = []
    for reason, raw in _WRONG:
        require_refused((FormatError, ValueError), lambda text: canonical_json(parse_json(text, "it")), raw)
        made.append({"bytes": raw.hex(), "reason": reason} if len(raw) < 1000 else _repeated(raw, reason))
    for bits in ("7ff0000000000000", "fff0000000000000", "7ff8000000000000", "7ff0000000000001", "ffffffffffffffff"):
        require_refused(ValueError, canonical_json, struct.unpack(">d", bytes.fromhex(bits))[0])
        made.append({"double": bits, "reason": "not_finite"})
    return made


def _repeated(raw: bytes, reason: str) -> dict[str, Any]:
    return {"bytes": "5b", "times": raw.count(b"["), "reason": reason}


def data() -> dict[str, Any]:
    """Return the file's content."""
    texts = [
        {"bytes": text.encode().hex(), "canonical": canonical_json(parse_json(text.encode(), "it")).decode()}
        for text in _TEXTS
    ]
    numbers = [_double(value) for value in (*_NUMBERS, *_drawn())]
    return {
        "subject": "canonical_json",
        "about": "The bytes of a JSON text, or the bits of a double, to canonical JSON; `times` repeats the bytes",
        "accept": [*texts, *{entry["double"]: entry for entry in numbers}.values()],
        "refuse": _refused(),
    }
