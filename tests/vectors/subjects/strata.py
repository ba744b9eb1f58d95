"""Axes, an item and a client's coordinates to the numbers of their cell and of their public stratum; wrong sections."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushcount.campaigns.axes import AxesPart
from hushcount.errors import FormatError
from hushcount.formats.reading import validated
from hushcount.strata import Cells
from tests.vectors.subjects.script import octets, require_refused

_VERSION = {"name": "version", "public": False, "values": ["2.1", "2.0", "1 beta"]}
_PLATFORM = {"name": "platform", "public": False, "values": ["linux"]}
_COUNTRIES = {"name": "country", "public": False, "values": [f"c{number}" for number in range(11)]}
_CHANNEL = {"name": "channel", "public": True, "values": ["beta", "stable"]}
_REGION = {"name": "region", "public": True, "values": [f"r{number}" for number in range(200)]}
_KEY = octets(32, "axes").hex()
_AXES: tuple[tuple[list[dict[str, Any]], int], ...] = (
    ([_PLATFORM], 1), ([_VERSION, _PLATFORM], 20), ([_COUNTRIES, _VERSION, _PLATFORM], 26_000),
    ([_CHANNEL], 3), ([_CHANNEL, _VERSION, _REGION], 26),
)  # fmt: skip
_BY: tuple[dict[str, str], ...] = (
    {}, {"platform": "linux"}, {"version": "2.0", "platform": "linux"}, {"version": "1 beta", "platform": "Linux"},
    {"version": "2.1", "country": "c10"}, {"version": "other", "country": "c11"}, {"version": "2", "channel": "beta"},
    {"platform": "linux ", "version": ""},
    {"constructor": "linux", "country": "c0", "version": "2.1", "platform": "linux"},
)  # fmt: skip
_PUBLIC_BY: tuple[dict[str, str], ...] = (
    {}, {"channel": "stable", "region": "r199", "version": "2.0"}, {"region": "r7"},
    {"channel": "Beta", "region": "r0"},
)  # fmt: skip
_WRONG: tuple[object, ...] = (
    None, [], {}, {"listed": [_PLATFORM]}, {"key": _KEY}, {"listed": [], "key": _KEY}, {"listed": None, "key": _KEY},
    {"listed": [_PLATFORM], "key": _KEY.upper()}, {"listed": [_PLATFORM], "key": _KEY[2:]},
    {"listed": [_PLATFORM], "key": 7}, {"listed": [_PLATFORM], "key": _KEY, "more": 1},
    {"listed": {"0": _PLATFORM}, "key": _KEY},
    *({"listed": listed, "key": _KEY} for listed in (
        [_PLATFORM, _PLATFORM], [{"name": f"a{number}", "public": False, "values": ["b"]} for number in range(9)],
        [{**_COUNTRIES, "name": name} for name in "abcd"], ["platform"], [None], [{**_PLATFORM, "more": 1}],
        [{"name": "platform", "public": False}], [{"values": ["linux"], "public": False}],
        [{"name": "platform", "values": ["linux"]}], [{**_PLATFORM, "public": 1}], [{**_PLATFORM, "public": None}],
    )),
    *({"listed": [{**_PLATFORM, "name": name}], "key": _KEY} for name in ("", "Platform", "a b", "a" * 65, 1, None)),
    *({"listed": [{**_PLATFORM, "values": values}], "key": _KEY} for values in (
        [], ["a", "a"], ["other"], [""], [" a"], ["a "], ["a,b"], ["a=b"], ["[a"], ["a]"], ["ä"], ["a\n"], ["a" * 65],
        [1], [None], "linux",
    )),
)  # fmt: skip


def data() -> dict[str, Any]:
    """Return the file's content."""
    accept = []
    for listed, items in _AXES:
        part = AxesPart.model_validate({"listed": listed, "key": _KEY})
        cells = Cells(items, len(part.private), bytes.fromhex(_KEY))
        for item in (0, items):
            for by in _PUBLIC_BY if part.public.axes else _BY:
                number = cells.number(*(np.array([one], dtype=np.uint64) for one in (item, part.private.place(by))))
                given = {"axes": {"listed": listed, "key": _KEY}, "items": items, "item": item, "by": by}
                cell = int(number[0]) if part.private.axes else item
                accept.append({**given, "cell": cell, "stratum": part.public.place(by)})
    for wrong in _WRONG:
        require_refused(FormatError, validated, AxesPart, wrong, "it")
    return {
        "subject": "strata",
        "about": "The section of a campaign file on axes, the number of items, an item and a client's coordinates: the "
        "numbers of their cell and of their public stratum",
        "accept": accept,
        "refuse": [{"axes": wrong, "reason": "axes"} for wrong in _WRONG],
    }
