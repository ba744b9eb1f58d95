"""Show a job's result as an answer: its counts, privacy statement and largest estimates, and the ledger's charge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from hushcount.maths.figures import rounded_down, rounded_up
from hushcount.privacy.words import in_one_line
from pipelines.console.answer import Answer
from pipelines.console.tables import Table, by_reason

if TYPE_CHECKING:
    from hushcount.privacy.composition import Loss
    from pipelines.outputs.account import Account, Charged, Spent, Terms
    from pipelines.outputs.summary import Explained, HopSummary, TableFacts


def hop_answer(summary: HopSummary, out: str, *lines: str, stated: bool = True, explain: bool = False) -> Answer:
    """Return a hop's summary as an answer.

    Args:
        summary: summary of the hop.
        out: the output directory of the hop.
        lines: lines for people about the main result of the hop.
        stated: whether to show the privacy statement to people.
        explain: whether to show the whole statement, not only its one line.
    """
    return Answer({**summary.data(), "out": out}, _shown(summary, out, lines, stated, explain))


def _shown(
    summary: HopSummary, out: str, lines: tuple[str, ...], stated: bool, explain: bool
) -> Iterator[RenderableType]:
    rows = [
        (str(stream), f"{counts.received:,}", f"{counts.accepted:,}", by_reason(counts.rejected))
        for stream, counts in summary.streams.items()
    ]
    if (bins := summary.bins) is not None:
        rows.append(("kept bins", f"{bins.kept:,}", f"{bins.found:,}", by_reason(bins.rejected)))
    heads = ("stream", "received", "accepted", "rejected")
    yield Table(f"{summary.hop}: {summary.campaign}", heads, rows, words=("rejected",))
    for stream, counts in summary.left_out.items():
        yield Text(
            f"stream {stream} is left out: {counts.accepted:,} of {counts.received:,} can be forwarded, fewer than the "
            "minimum batch; shuffle this stream again, with later reports and without the other stream",
            "yellow",
        )
    if stated:
        yield from sentences(summary) if explain else short(summary)
    for line in lines:
        yield f"  {line}"
    yield f"  written to {out}"


def sentences(summary: HopSummary) -> Iterator[RenderableType]:
    """Yield the sentences of a hop's privacy statement."""
    yield Padding(Text(" ".join(summary.stated.plain), style="bold"), (0, 0, 1, 2))
    for sentence in summary.stated.sentences:
        yield Padding(Text(sentence), (0, 0, 0, 2))


def short(summary: HopSummary) -> Iterator[RenderableType]:
    """Yield the one line of a hop's privacy statement, and how to see the rest."""
    _, said = in_one_line(summary.stated)
    yield Padding(Text.assemble((said, "bold"), " (--explain says the rest)"), (0, 0, 1, 2))


def largest(summary: HopSummary) -> list[str]:
    """Return lines with the largest counts of detected items and the number of detected items.

    In an open domain without estimates, one line says how to get estimates. If discovered values have counts, a line
    says how much of "other" they are.
    """
    estimates, raised = summary.estimates, () if summary.flags is None else summary.flags.raised
    if estimates is None or (table := estimates.table) is None:
        return ["the domain is open: query tally.npz with hushcount job estimate, or give --items or --found", *raised]
    explained = [] if estimates.explained is None else [other_explained(estimates.explained)]
    explained += [] if estimates.apart is None else [estimates.apart]
    rows = estimates.largest
    width = max((cell_len(row.item) for row in rows), default=0)
    lines = [
        f"{row.item}{' ' * (width - cell_len(row.item))}  {row.share:7.2%}  {row.count:,.0f} \u00b1 {row.error:,.0f}"
        for row in rows
    ]
    shown = f"the {len(rows)} largest of " if len(rows) < table.detected_all else ""
    return [*lines, f"{shown}{table.detected_all:,} items {detection(table)}", *explained, *raised]


def other_explained(explained: Explained) -> str:
    """Return a sentence on how many of the reports in "other" hold discovered values."""
    counts = f"{explained.count:,.0f} \u00b1 {explained.standard_error:,.0f}"
    rest = f"{explained.rest:,.0f} \u00b1 {explained.rest_error:,.0f}"
    bias = f" (about {explained.bias:,.0f} too many, or more: see bias in found.csv)" if explained.bias >= 1.0 else ""
    values = f"{explained.values:,} discovered value{'' if explained.values == 1 else 's'}"
    if explained.lower_bound:
        return (
            f"{counts} of \u201cother\u201d are reports of {values}{bias}, a lower bound: reports whose evaluation did "
            f"not come are missing; the other {rest} hold values that were not found, or got no evaluation."
        )
    return f"{counts} of \u201cother\u201d hold {values}{bias}; {rest} hold values that were not found."


def found_lines(summary: HopSummary) -> list[str]:
    """Return lines about discovered values: their number, and the error of their counts."""
    if summary.bins is None:
        return []
    counted = summary.counts_of_values
    return [f"{summary.bins.found:,} values found, in found.csv", *([] if counted is None else [counted.says])]


def detection(table: TableFacts) -> str:
    """Return the meaning of "detected", as the end of a sentence that begins with a number of items."""
    return (
        f"detected among {table.items:,}: the probability that even one of them is wrong is "
        f"{100 * (1 - table.confidence):.3g} % at most, for all items looked at together (Bonferroni)."
    )


def charged(summary: HopSummary) -> list[str]:
    """Return a line on the ledger's charge; an empty list if there is no ledger."""
    charge = summary.ledger
    if charge is None or charge == "no ledger":
        return []
    line = f"charged {pair(charge)} for one {charge.per}{'' if charge.new else ' in an earlier run, not again'}"
    return [line if charge.account.remaining is None else f"{line}; {remaining(charge.account)} remain in the ledger"]


def remaining(account: Account) -> str:
    """Return the cost that the ledger's limit certainly still allows; with joint composition it may allow more."""
    least = "at least " if account.limit is not None and account.limit.composition == "joint" else ""
    left = account.remaining
    return least + (pair(left) if left is None else f"({rounded_down(left.epsilon)}, {rounded_down(left.delta)})")


def pair(guarantee: Charged | Loss | Spent | Terms | None) -> str:
    """Return epsilon and delta in parentheses, rounded up."""
    if guarantee is None:
        return "none set"
    epsilon = "no bound" if guarantee.epsilon is None else rounded_up(guarantee.epsilon)
    return f"({epsilon}, {rounded_up(guarantee.delta)})"
