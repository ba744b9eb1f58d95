"""What becomes of a batch of reports, by docs/wire-format.md."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

from tests.vectors.stranger.basics import require

LONGEST = 86_400.0
WINDOW = datetime(2026, 10, 22, tzinfo=timezone.utc)


DAY = 86_400
SPANS = {"day": (17 * 3600, 2 * DAY), "week": (7 * DAY - 25_200, 8 * DAY), "month": (28 * DAY - 25_200, 32 * DAY)}
"""Of a listed window, in seconds."""
LAST = int(datetime(8999, 12, 31, tzinfo=timezone.utc).timestamp())


def check_windows(section: Any) -> None:
    """Refuse a section of a campaign file that lists no windows."""
    require(isinstance(section, dict) and set(section) == {"unit", "starts"}, "windows")
    unit, starts = section["unit"], section["starts"]
    require(isinstance(unit, str) and unit in SPANS and isinstance(starts, list) and 2 <= len(starts) <= 500, "windows")
    require(all(type(one) is int and 0 <= one <= LAST for one in starts), "windows")
    (least, most), spans = SPANS[unit], [later - earlier for earlier, later in pairwise(starts)]
    require(all(least <= span <= most for span in spans), "windows")


def window(entry: dict[str, Any]) -> dict[str, int]:
    """Return when the window of a moment begins, and the next."""
    if "windows" in entry:
        check_windows(entry["windows"])
    moment = min(max(entry["moment"], 0), LAST)
    if "seconds" in entry:
        begins = moment // entry["seconds"] * entry["seconds"]
        return {"begins": begins, "next": begins + entry["seconds"]}
    starts = entry["windows"]["starts"]
    return {
        "begins": max((one for one in starts if one <= moment), default=starts[0]),
        "next": min((one for one in starts[1:] if one > moment), default=LAST),
    }


def fate(status: int, body: list[str], retry_after: str, reports: int, date: list[str]) -> tuple[str, str, float]:
    """Return what the client does, why, and after how many seconds at least."""
    name = problem(*body)
    if status == 202:
        return "sent", "", 0.0
    if status == 425 and name == "window_not_begun" and date[0] and not date[1]:
        said = datetime.strptime(date[0], "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=timezone.utc)
        if said < WINDOW:
            return "early", name, min((WINDOW - said).total_seconds(), LONGEST)
    if status in (408, 425, 429) or status >= 500:
        asked = float(retry_after) if retry_after and set(retry_after) <= set("0123456789") else 0.0
        return "again", name or f"status_{status}", min(asked, LONGEST)
    if status == 413:
        return "smaller" if reports > 1 else "dropped", name or "too_long", 0.0
    if status < 400 or not name:
        return "refused", "no_collector", 0.0
    known = {"epoch_closed": "closed", "unknown_fingerprint": "closed"}
    known |= dict.fromkeys(("epoch_not_begun", "window_over"), "again")
    return known.get(name, "dropped"), name, 0.0


def problem(media_type: str, text: str) -> str:
    """Return the name of a problem, empty if the answer has none."""
    if media_type.partition(";")[0].strip().lower() != "application/problem+json":
        return ""
    try:
        said: Any = json.loads(text)
    except ValueError:
        return ""
    of = said.get("type") if isinstance(said, dict) else None
    found = re.fullmatch("urn:hushcount:problem:([a-z_]{1,40})", of) if isinstance(of, str) else None
    return found[1] if found else ""
