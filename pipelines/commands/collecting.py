"""The part of hushcount status about what is being collected."""

from __future__ import annotations

from typing import Any

from pipelines.audit.collecting import Collecting
from pipelines.console.common import out_console
from pipelines.console.tables import show_table, stamp, window_names


def facts_of(now: Collecting) -> dict[str, Any]:
    """Return it for machines; `held` is null where it cannot be seen from here."""
    return {
        "window": now.window.name,
        "ends": now.window.end.isoformat(),
        "closed_by": now.closed_by.isoformat(),
        "held": None
        if now.held is None
        else [{"window": one.window.name, "stream": one.stream, "reports": one.reports} for one in now.held],
        "seen": now.why,
    }


def show_collecting(campaign: str, now: Collecting) -> None:
    """Print the window that is open, and what the collector of this machine holds."""
    console = out_console()
    ends, closed_by = stamp(now.window.end), stamp(now.closed_by)
    console.print(f"{campaign}: the open window ends {ends}; hushcount run closes it by {closed_by}", soft_wrap=True)
    if now.held is None:
        console.print(f"  what collectors hold of it is not seen: {now.why}\n", soft_wrap=True)
        return
    short = window_names(one.window.name for one in now.held)
    rows = [(short[one.window.name], one.stream, f"{one.reports:,}", stamp(one.window.end)) for one in now.held]
    if rows:
        heads = ("window", "stream", "in journals", "ends")
        show_table(console, heads, rows, title=f"{campaign}: in journals, {now.why}", words=())
        console.print()
    else:
        console.print(f"  nothing is in journals, {now.why}\n", soft_wrap=True)
