"""Logs to their heads, and what continues the head that a client kept, or what the operator restarts at."""

from __future__ import annotations

from typing import Any

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature, Restart
from hushcount.campaigns.log import CampaignLog
from hushcount.errors import FormatError
from hushcount.formats.reading import validated
from hushcount.newest import Newest, Untrusted
from tests.vectors.subjects.campaigns import campaign
from tests.vectors.subjects.script import require_refused
from tests.vectors.subjects.signing import delegated, delegation, plain, restart, signed


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


_Step = tuple[Campaign | None, int, Campaign, dict[str, Any] | None, CampaignSignature | None]
"""What was kept and its serial, what is offered, its log and its signature."""


def _entry(step: _Step) -> dict[str, Any]:
    kept, serial, after, log, signature = step
    given: dict[str, Any] = {"rule": "continue", "kept": None}
    if kept is not None:
        given["kept"] = {"epoch": kept.epoch, "head": kept.head.hex(), "serial": serial}
    offered = {"epoch": after.epoch, "fingerprint": after.fingerprint.hex()}
    if after.previous is not None:
        offered["previous"] = after.previous
    if log is not None:
        given["log"] = log
    if signature is not None:
        given["signature"] = plain(signature)
    return {**given, "offered": offered}


def _accepts(step: _Step) -> bool:
    kept, serial, after, log, signature = step
    newest = Newest()
    if kept is not None:
        newest.keep(kept, None, _by(kept, serial) if serial else None)
    try:
        newest.keep(after, None if log is None else validated(CampaignLog, log, "it"), signature)
    except Untrusted:
        return False
    return True


def _by(campaign: Campaign, serial: int, back: Restart | None = None) -> CampaignSignature:
    """Return the publisher's signature under the delegation of a serial."""
    return delegated(campaign, delegation(campaign, serial=serial, last_epoch=2_147_483_647), restart=back)


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
    steps: list[tuple[_Step, int]] = [((kept, 0, after, log, None), 0) for kept, after, log in chosen]
    steps += _restarted()
    assert all(_accepts(step) for step, _ in steps)
    return [{**_entry(step), "head": step[2].head.hex(), "serial": serial} for step, serial in steps]


def _restarted() -> list[tuple[_Step, int]]:
    """Return what a client accepts by the operator's statements, and the serial that it keeps then."""
    first, second, third, fifth, ninth = _CHAIN
    fork, fork_log = _FORK[4], _log(_FORK)
    # A thief's epoch 1000; epoch 4 of the operator.
    thiefs, fourth, far = _after(third, 1000), _after(third, 4), _after(third, 3 + 4096)
    back = restart(third, 2)
    return [
        ((None, 0, third, None, _by(third, 3)), 3),
        ((None, 0, fourth, None, signed(fourth, restart=restart(first, 2))), 2),
        ((third, 0, thiefs, None, _by(thiefs, 1)), 1),
        ((third, 1, thiefs, None, _by(thiefs, 1)), 1),
        ((third, 3, fifth, None, _by(fifth, 4)), 4),
        ((third, 3, fifth, None, signed(fifth)), 3),
        ((third, 1, far, None, _by(far, 1)), 1),
        ((third, 1, _after(third, 2_147_483_647), None, signed(_after(third, 2_147_483_647))), 1),
        ((thiefs, 1, fourth, None, signed(fourth, restart=back)), 2),
        ((thiefs, 1, third, None, signed(third, restart=back)), 2),
        ((thiefs, 1, fourth, None, _by(fourth, 3, back)), 3),
        ((thiefs, 1, ninth, _log(_CHAIN), _by(ninth, 3, back)), 3),
        ((second, 0, ninth, _log(_CHAIN), _by(ninth, 3, back)), 3),
        ((fork, 1, fifth, fork_log, signed(fifth, restart=back)), 2),
        ((fourth, 2, fourth, None, signed(fourth, restart=back)), 2),
        ((fourth, 2, _after(third, 1001), None, signed(_after(third, 1001), restart=restart(third, 3))), 3),
    ]


def _misled() -> list[tuple[str, _Step]]:
    """Return what a client refuses of a publisher or of a restart, and why."""
    second, third, fifth, ninth = _CHAIN[1:]
    thiefs, fourth, back = _after(third, 1000), _after(third, 4), restart(third, 2)
    after_fourth, far = _after(fourth, 1000), _after(third, 3 + 4097)
    return [
        ("replaced_publisher", (third, 2, fifth, None, _by(fifth, 1))),
        ("replaced_publisher", (fourth, 2, after_fourth, None, _by(after_fourth, 1))),
        ("replaced_publisher", (fourth, 2, thiefs, None, _by(thiefs, 1))),
        ("replaced_publisher", (third, 2, third, None, _by(third, 1))),
        ("jump", (third, 1, far, None, _by(far, 1))),
        ("jump", (third, 1, _after(third, 2_147_483_647), None, _by(_after(third, 2_147_483_647), 1))),
        # Not by the number that the thief reached, but by that of the restart.
        ("jump", (thiefs, 1, far, None, _by(far, 3, back))),
        ("older_epoch", (thiefs, 1, fourth, None, signed(fourth))),
        ("older_epoch", (thiefs, 2, fourth, None, signed(fourth, restart=back))),
        ("older_epoch", (thiefs, 3, fourth, None, signed(fourth, restart=back))),
        ("older_epoch", (fourth, 2, third, None, signed(third, restart=back))),
        ("older_epoch", (thiefs, 1, second, None, signed(second, restart=back))),
        ("another_file", (thiefs, 1, _FORK[2], None, signed(_FORK[2], restart=back))),
        ("another_history", (fourth, 2, thiefs, None, signed(thiefs, restart=back))),
        ("another_history", (thiefs, 1, ninth, None, signed(ninth, restart=back))),
        ("another_history", (thiefs, 1, ninth, _log(_FORK), signed(ninth, restart=back))),
        ("another_history", (thiefs, 1, _after(third, 1001), _log(_CHAIN), signed(_after(third, 1001)))),
    ]


def _after(before: Campaign, epoch: int) -> Campaign:
    """Return a file of a later epoch than the chain's."""
    return Campaign.model_validate({**before.model_dump(), "epoch": epoch, "previous": before.head.hex()})


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
    steps: list[tuple[str, _Step]] = [(reason, (kept, 0, after, log, None)) for reason, kept, after, log in chosen]
    steps += _misled()
    assert not [reason for reason, step in steps if _accepts(step)]
    return [{**_entry(step), "reason": reason} for reason, step in steps]


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
        require_refused(FormatError, validated, CampaignLog, {**log, **changes}, "it")
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
