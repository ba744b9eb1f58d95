"""Flags of poisoning: what in each window's reports honest clients do not explain."""

from __future__ import annotations

from pipelines.monitoring.panel_campaign import Shown
from pipelines.pages.figures import Figure, Row

_HEADS = ("window", "equal reports", "supports", "counts")
_NOTES = (
    "Honest clients raise each flag with a probability of at most one in a million a window. \u201ccannot tell\u201d: "
    "not even 1 % of all clients would raise the flag, if all of them forged in the way that it finds best. No flag "
    "finds forgers who report as honest clients of an item that they do not have.",
)


def flags_of(shown: Shown) -> Figure:
    """Return a figure of the flags of each result, with a sentence for each raised flag, the newest window first."""
    rows, says = [], []
    for one in reversed(shown.source.counted):
        flags, name = one.tally.flags, shown.windows[one.window]
        says += [f"{name}: {said}." for said in flags.raised]
        verdicts = tuple(flag.verdict for flag in (flags.repeated, flags.totals, flags.counts))
        rows.append(Row(name, verdicts, wrong=bool(flags.raised), facts=flags.model_dump()))
    said = tuple(says) or ("No window is flagged.",)
    key = f"{shown.key}-flags"
    return Figure(key, "Flags of poisoning", said, "none", _HEADS, tuple(rows), most=len(rows), notes=_NOTES)
