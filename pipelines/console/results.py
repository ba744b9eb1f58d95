"""Lines about a job's result: the largest counts, and what the ledger charged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from hushcount.privacy.composition import Loss
    from pipelines.outputs.account import Account, Charged, Spent, Terms
    from pipelines.outputs.estimates import TableFacts
    from pipelines.outputs.summary import HopSummary


def largest(summary: HopSummary) -> list[str]:
    """Return lines with the largest counts of detected items, and of how many they are; or how to get any."""
    estimates = summary.estimates
    if estimates is None or (table := estimates.table) is None:
        return ["the domain is open: ask tally.npz for items with hushcount estimate, or give --items or --found"]
    rows = estimates.largest
    width = max((cell_len(row.item) for row in rows), default=0)
    lines = [
        f"{row.item}{' ' * (width - cell_len(row.item))}  {row.share:7.2%}  {row.count:,.0f} \u00b1 {row.error:,.0f}"
        for row in rows
    ]
    shown = f"the {len(rows)} largest of " if len(rows) < table.detected_all else ""
    return [*lines, f"{shown}{table.detected_all:,} items {detection(table)}"]


def detection(table: TableFacts) -> str:
    """Return what the items are that are shown as detected."""
    return (
        f"detected among {table.items:,}: any of them wrongly with a probability of "
        f"{100 * (1 - table.confidence):.3g} % at most, for all items looked at together (Bonferroni)."
    )


def charged(summary: HopSummary) -> list[str]:
    """Return a line about what the ledger charged, or none without a ledger."""
    charge = summary.ledger
    if charge is None or charge == "no ledger":
        return []
    line = f"charged {pair(charge)} for one {charge.per}{'' if charge.new else ' before, not again'}"
    return [line if charge.account.remaining is None else f"{line}; {remaining(charge.account)} remain in the ledger"]


def remaining(account: Account) -> str:
    """Return what more releases are certain to fit; where charges compose numerically, dearer ones may."""
    least = "at least " if account.limit is not None and account.limit.composition == "numerical" else ""
    return least + pair(account.remaining)


def pair(guarantee: Charged | Loss | Spent | Terms | None) -> str:
    """Return epsilon and delta in parentheses."""
    if guarantee is None:
        return "none set"
    epsilon = "no bound" if guarantee.epsilon is None else f"{guarantee.epsilon:.4g}"
    return f"({epsilon}, {guarantee.delta:.4g})"
