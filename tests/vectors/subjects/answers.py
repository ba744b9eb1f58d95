"""Answers to a batch of reports, whoever gives them, and what they mean for the reports: every combination of parts.

Each row stands for all combinations of its statuses, bodies, Retry-After headers and numbers of reports.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

from hushcount.delivery.exchange import Reply
from hushcount.delivery.verdicts import verdict

_STATUSES = (
    100, 200, 201, 202, 204, 206, *range(301, 309), *range(400, 432), 451, 499, *range(500, 505), 511, 599, 999,
)  # fmt: skip
_PROBLEM = "application/problem+json"
_NAMES = (
    "epoch_closed", "unknown_fingerprint", "epoch_not_begun", "window_not_begun", "window_over", "too_long",
    "wrong_length", "a_name_of_the_future",
)  # fmt: skip
_BODIES = (
    ("", ""),
    ("text/html; charset=utf-8", "<html>Pay for this network"),
    ("application/json", json.dumps({"type": "urn:hushcount:problem:epoch_closed"})),
    (_PROBLEM, json.dumps({"type": "about:blank", "status": 409})),
    (_PROBLEM, json.dumps({"type": "urn:hushcount:problem:no name"})),
    (_PROBLEM, "[]"),
    (_PROBLEM, "{"),
    *(
        (f"{_PROBLEM.title()} ; charset=utf-8", json.dumps({"type": f"urn:hushcount:problem:{name}"}))
        for name in _NAMES
    ),
)
_DATE = "Wed, 21 Oct 2026 07:28:00 GMT"
_RETRIES = ("", "0", "120", _DATE, "-5", "1.5", "soon", "86401", "9" * 12, "9" * 400)
VALUES: dict[str, tuple[Any, ...]] = {
    "status": _STATUSES,
    "body": tuple(list(body) for body in _BODIES),
    "retry_after": _RETRIES,
    "reports": (1, 2, 1000),
    "date": (
        ["", ""],
        [_DATE, ""],
        [_DATE, "60"],
        ["Thu, 22 Oct 2026 00:00:00 GMT", ""],
        ["Mon, 12 Oct 2026 07:28:00 GMT", ""],
    ),
}
_WINDOW = 1_792_627_200
"""When the window of the reports' token began: 2026-10-22T00:00:00Z."""


def _meaning(status: int, body: list[str], retry_after: str, reports: int, date: list[str]) -> tuple[str, str, float]:
    headers = {"content-type": body[0], "retry-after": retry_after, "date": date[0], "age": date[1]}
    reply = Reply(status, {name: text for name, text in headers.items() if text}, body[1].encode())
    said = verdict(reply, reports, _WINDOW)
    return said.fate, said.reason, said.wait


def _rows() -> list[dict[str, Any]]:
    """Return all combinations, those of one meaning put together along one axis after the other."""
    rows = {tuple((value,) for value in map(json.dumps, one)): _meaning(*one) for one in product(*VALUES.values())}
    for axis in range(len(VALUES)):
        merged: dict[Any, list[str]] = {}
        for place, meaning in rows.items():
            merged.setdefault((place[:axis], place[axis + 1 :], meaning), []).extend(place[axis])
        rows = {(*before, tuple(values), *after): meaning for (before, after, meaning), values in merged.items()}
    return [
        {name: [json.loads(value) for value in values] for name, values in zip(VALUES, place, strict=True)}
        | dict(zip(("fate", "reason", "wait"), meaning, strict=True))
        for place, meaning in rows.items()
    ]


def data() -> dict[str, Any]:
    """Return the file's content."""
    rows = _rows()
    sent = [{name: value for name, value in row.items() if name != "reason"} for row in rows if row["fate"] == "sent"]
    return {
        "subject": "answers",
        "about": "Status, body (media type, text), Retry-After, number of reports, and Date with Age, to what becomes "
        "of these, and the seconds to wait at least, for a token of window 20261022T000000Z; a row stands for every "
        "combination of its values",
        "accept": sent,
        "refuse": [row for row in rows if row["fate"] != "sent"],
    }
