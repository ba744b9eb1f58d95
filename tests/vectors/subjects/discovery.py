"""Discovery reports: hash, padded value, inner box, the whole report with a given outer secret."""

from __future__ import annotations

from typing import Any

from hushcount.discovery.pairs import HASH_BYTES, DiscoveryFormat
from hushcount.errors import UsageError
from hushcount.wire.sealing import Sealer
from tests.vectors.subjects.script import octets, require_refused
from tests.vectors.subjects.sealing import keypair, sealed

FORM = DiscoveryFormat(octets(16, "binding"), octets(32, "hash key"), max_value_bytes=24)
WIDEST = DiscoveryFormat(FORM.binding, FORM.hash_key, max_value_bytes=4096)
NARROWEST = DiscoveryFormat(FORM.binding, FORM.hash_key, max_value_bytes=1)


def _made(form: DiscoveryFormat, value: str | None) -> dict[str, Any]:
    analyzer, aux = keypair("analyzer")[0], keypair("aux_server")[0]
    fresh = octets(64, "nothing to discover")
    bin_hash, key = (fresh[:HASH_BYTES], fresh[HASH_BYTES:]) if value is None else (form.hash(value), form.hash_key)
    padded, secret = form.pad(value), octets(32, "outer", value)
    inner = Sealer(analyzer).seal_alike(form.binding + padded, key)
    report = sealed(form.binding + bin_hash + inner, aux, secret)
    # The report ends with the inner box, sealed; the widest one is long enough already.
    return {
        **_given(form),
        "value": value,
        **({"fresh": fresh.hex()} if value is None else {}),
        "ephemeral_secret": secret.hex(),
        "hash": bin_hash.hex(),
        **({"padded": padded.hex(), "inner": inner.hex()} if form.max_value_bytes < 100 else {}),
        "report": report.hex(),
    }


def _given(form: DiscoveryFormat) -> dict[str, Any]:
    return {
        "binding": form.binding.hex(),
        "hash_key": form.hash_key.hex(),
        "max_value_bytes": form.max_value_bytes,
        "analyzer": keypair("analyzer")[0].hex(),
        "aux_server": keypair("aux_server")[0].hex(),
    }


def _refused() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for form, value in ((FORM, "a" * 25), (FORM, "ä" * 13), (FORM, "😀" * 7), (NARROWEST, "é"), (NARROWEST, "ab")):
        require_refused(UsageError, form.pad, value)
        made.append({**_given(form), "value": value, "reason": "value_too_long"})
    good = FORM.pad("padded")
    nothing = FORM.pad(None)
    padded = [
        (good[:-1], "wrong_length"),
        (good + b"\0", "wrong_length"),
        (b"", "wrong_length"),
        (b"\x19\0" + good[2:], "length_out_of_range"),
        (b"\xfe\xff" + good[2:], "length_out_of_range"),
        (good[:-1] + b"\1", "padding_not_zero"),
        (b"\x05\0" + good[2:], "padding_not_zero"),
        (nothing[:-1] + b"\1", "padding_not_zero"),
        (nothing[:2] + b"a" + nothing[3:], "padding_not_zero"),
        (b"\x01\0\xff" + bytes(23), "not_utf8"),
        (b"\x03\0\xed\xa0\x80" + bytes(21), "not_utf8"),
        (b"\x02\0\xc0\x80" + bytes(22), "not_utf8"),
    ]
    for octets_, reason in padded:
        require_refused(ValueError, FORM.unpad, octets_)
        made.append({"max_value_bytes": FORM.max_value_bytes, "padded": octets_.hex(), "reason": reason})
    return made


def data() -> dict[str, Any]:
    """Return the file's content."""
    values = ("golden", "x", " ", "größer", "a" * 24, "日本語の八文字", None)
    return {
        "subject": "discovery",
        "about": "A value to its discovery report; null is nothing to discover, for which fresh are 64 random bytes",
        "accept": [*(_made(FORM, value) for value in values), _made(NARROWEST, "y"), _made(WIDEST, "z" * 1000)],
        "refuse": _refused(),
    }
