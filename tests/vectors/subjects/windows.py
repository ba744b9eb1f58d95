"""When windows begin, by a length or by the list of a campaign file; and lists that must be refused."""

from __future__ import annotations

from typing import Any

from hushcount.campaigns.parts import MOST_STARTS, WindowsPart
from hushcount.errors import FormatError
from hushcount.formats.reading import validated
from hushcount.window_starts import LAST, Starts
from tests.vectors.subjects.script import require_refused

_DAY = 86_400
_FIRST = 1_792_879_200
"""2026-10-24 in Berlin, whose next day has 25 hours."""
DAYS = {"unit": "day", "starts": [_FIRST, _FIRST + _DAY, _FIRST + 2 * _DAY + 3600, _FIRST + 3 * _DAY + 3600]}
_MONTHS = {"unit": "month", "starts": [0, 31 * _DAY, 59 * _DAY, 91 * _DAY]}
_LISTED: tuple[tuple[dict[str, Any], tuple[int, ...]], ...] = (
    (DAYS, (0, _FIRST - 1, _FIRST, _FIRST + _DAY - 1, _FIRST + _DAY, _FIRST + 2 * _DAY, _FIRST + 3 * _DAY + 3599)),
    (DAYS, (_FIRST + 3 * _DAY + 3600, _FIRST + 1000 * _DAY, LAST, LAST + _DAY)),
    (_MONTHS, (-1, 0, 31 * _DAY - 1, 31 * _DAY, 60 * _DAY)),
)
_OF_LENGTH = ((_DAY, (0, _FIRST, _FIRST + 7200)), (7 * _DAY, (_FIRST,)), (366 * _DAY, (_FIRST,)), (1, (_FIRST,)))
_WRONG: tuple[object, ...] = (
    *({**DAYS, "unit": unit} for unit in ("hour", "Day", "", 1, None, "toString")),
    *({"unit": "day", "starts": starts} for starts in (
        [], [0], [0, 0], [_DAY, 0], [0, 61_199], [0, 2 * _DAY + 1], [-_DAY, 0], [0.5, _DAY], ["0", "86400"],
        [False, _DAY], "0", None, [LAST, LAST + _DAY], [0, _DAY, _DAY], {"0": 0},
        [_DAY * day for day in range(MOST_STARTS + 1)],
    )),
    *({"unit": "week", "starts": starts} for starts in ([0, _DAY], [0, 579_599], [0, 8 * _DAY + 1])),
    *({"unit": "month", "starts": starts} for starts in ([0, 7 * _DAY], [0, 2_393_999], [0, 32 * _DAY + 1])),
    {"unit": "day"}, {"starts": [0, _DAY]}, {**DAYS, "zone": "Europe/Berlin"}, [0, _DAY], "day",
)  # fmt: skip


def data() -> dict[str, Any]:
    """Return the file's content."""
    accept = [
        {"windows": windows, "moment": moment, **_found(Starts(_DAY, tuple(windows["starts"])), moment)}
        for windows, moments in _LISTED
        for moment in moments
    ]
    accept += [
        {"seconds": seconds, "moment": moment, **_found(Starts(seconds), moment)}
        for seconds, moments in _OF_LENGTH
        for moment in moments
    ]
    for wrong in _WRONG:
        require_refused(FormatError, validated, WindowsPart, wrong, "it")
    return {
        "subject": "windows",
        "about": "The length of windows, or the section of a campaign file, and a moment: when its window and the next "
        "begin. All are in seconds",
        "accept": accept,
        "refuse": [{"windows": wrong, "reason": "windows"} for wrong in _WRONG],
    }


def _found(starts: Starts, moment: int) -> dict[str, int]:
    return {"begins": starts.at(moment), "next": starts.after(moment)}
