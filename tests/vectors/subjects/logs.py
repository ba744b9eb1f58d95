"""Logs to their heads, and what continues the head that a client kept."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.log import CampaignLog
from hushcount.errors import FormatError
from hushcount.formats.reading import validated
from hushcount.newest import Newest, Untrusted
from tests.vectors.subjects.campaigns import campaign
from tests.vectors.subjects.signing import plain, signed


def _chain(numbers: tuple[int, ...], cap: int = 1) -> list[Campaign]:
    """Return the campaigns of these epochs, each after the one before; another cap makes another history."""
    made: list[Campaign] = []
    for number in numbers:
        content = campaign("grr").model_dump()
        content |= {"epoch": number, "previous": made[-1].head.hex() if made else None}
        content["shuffle"] = {"cap": cap if number > 2 else 1}
        made.append(Campaign.model_validate(content))
    return made


_CHAIN = _chain((1, 2, 3, 5, 9))
_FORK = _chain((1, 2, 3, 5, 9), cap=2)


def _log(chain: list[Campaign], with_signatures: bool = False) -> dict[str, Any]:
    entries: list[dict[str, Any]] = [{"epoch": one.epoch, "fingerprint": one.fingerprint.hex()} for one in chain]
    if with_signatures:
        for entry, one in zip(entries, chain, strict=True):
            entry["signature"] = plain(signed(one))
    return {"format": 1, "campaign": "vectors.grr", "entries": entries}


def _heads(log: dict[str, Any]) -> dict[str, Any]:
    return {"rule": "heads", "log": log, "heads": [head.hex() for head in validated(CampaignLog, log, "it").heads]}


def _next(kept: Campaign | None, after: Campaign, log: dict[str, Any] | None) -> dict[str, Any]:
    given: dict[str, Any] = {"rule": "continue", "kept": None}
    if kept is not None:
        given["kept"] = {"epoch": kept.epoch, "head": kept.head.hex()}
    offered = {"epoch": after.epoch, "fingerprint": after.fingerprint.hex()}
    if after.previous is not None:
        offered["previous"] = after.previous
    return {**given, "offered": offered, **({} if log is None else {"log": log}), "head": after.head.hex()}


def _accepts(kept: Campaign | None, after: Campaign, log: dict[str, Any] | None) -> bool:
    newest = Newest()
    if kept is not None:
        newest.keep(kept)
    try:
        newest.keep(after, None if log is None else validated(CampaignLog, log, "it"))
    except Untrusted:
        return False
    return True


def _continued() -> list[dict[str, Any]]:
    first, second, third, fifth, ninth = _CHAIN
    chosen = [
        (None, first, None),
        (None, ninth, None),
        (first, first, None),
        (first, second, None),
        (third, fifth, None),
        (third, fifth, _log(_FORK)),
        (first, ninth, _log(_CHAIN)),
        (first, ninth, _log(_CHAIN[:4])),
        (second, fifth, _log(_CHAIN[:3])),
        (third, ninth, _log(_CHAIN, with_signatures=True)),
    ]
    assert all(_accepts(*one) for one in chosen)
    return [_next(*one) for one in chosen]


def _forked() -> list[dict[str, Any]]:
    first, second, third, fifth, ninth = _CHAIN
    other = _FORK[2]
    alone = campaign("grr").model_copy(update={"epoch": 2})
    chosen = [
        ("older_epoch", second, first, None),
        ("older_epoch", ninth, fifth, _log(_CHAIN)),
        ("another_file", third, other, None),
        ("another_file", third, other, _log(_FORK)),
        ("another_history", third, _FORK[3], None),
        ("another_history", third, _FORK[3], _log(_FORK)),
        ("another_history", third, _FORK[4], _log(_CHAIN)),
        ("another_history", third, _FORK[4], _log(_FORK)),
        ("another_history", first, ninth, _log(_CHAIN[:3])),
        ("another_history", first, ninth, _log(_CHAIN[1:])),
        ("another_history", first, third, None),
        ("another_history", second, ninth, _log([])),
        ("another_history", first, alone, None),
        ("another_history", first, alone, _log(_CHAIN)),
    ]
    made = []
    for reason, kept, after, log in chosen:
        assert not _accepts(kept, after, log), reason
        entry = _next(kept, after, log)
        del entry["head"]
        made.append({**entry, "reason": reason})
    return made


def _malformed() -> list[dict[str, Any]]:
    log = _log(_CHAIN[:3])
    entries = log["entries"]
    wrong = [
        ("not_ascending", {"entries": [entries[1], entries[0]]}),
        ("not_ascending", {"entries": [entries[0], entries[0]]}),
        ("not_ascending", {"entries": [*entries, entries[0]]}),
        ("malformed", {"format": 2}),
        ("malformed", {"entries": None}),
        ("malformed", {"entries": {}}),
        ("malformed", {"campaign": "A"}),
        ("malformed", {"heads": []}),
        ("malformed", {"entries": [{**entries[0], "epoch": 0}]}),
        ("malformed", {"entries": [{**entries[0], "epoch": 2_147_483_648}]}),
        ("malformed", {"entries": [{**entries[0], "fingerprint": "00"}]}),
        ("malformed", {"entries": [{**entries[0], "fingerprint": entries[0]["fingerprint"].upper()}]}),
        ("malformed", {"entries": [{"epoch": 1}]}),
        ("malformed", {"entries": [{**entries[0], "head": "0" * 64}]}),
        ("malformed", {"entries": [{**entries[0], "signature": {"key_id": "0" * 16}}]}),
    ]
    made = []
    for reason, changes in wrong:
        with suppress(FormatError):
            validated(CampaignLog, {**log, **changes}, "it")
            raise AssertionError(f"{changes} is not refused")
        made.append({"rule": "heads", "log": {**log, **changes}, "reason": reason})
    return made


def data() -> dict[str, Any]:
    """Return the file's content."""
    return {
        "subject": "logs",
        "about": "A log to the head after each entry; whether an offered campaign continues the head that was kept",
        "accept": [
            *(_heads(_log(_CHAIN[:number])) for number in (0, 1, 3)),
            _heads(_log(_CHAIN, with_signatures=True)),
            _heads(_log(_FORK)),
            *_continued(),
        ],
        "refuse": [*_malformed(), *_forked()],
    }
