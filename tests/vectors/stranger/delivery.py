"""What becomes of a batch of reports, by docs/wire-format.md."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from typing import Any

LONGEST = 86_400.0
WINDOW = datetime(2026, 10, 22, tzinfo=timezone.utc)


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
