"""What the demo tells of each party: what it did, saw and could not see, and how its results compare with the truth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from rich import table
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from aux_server.bins import Bins
from hushcount.campaigns.campaign import Campaign
from hushcount.discovery.found_counts import kept_bias
from hushcount.discovery.keep_rules import KeepRule
from hushcount.discovery.pairs import HASH_BYTES
from hushcount.maths.count_laws import CountLaw
from hushcount.oracles.catalogue import frequency_oracle
from hushcount.oracles.encoders.pool import Pool
from pipelines.commands.demo.scenes import Scene
from pipelines.console.answer import show
from pipelines.console.job_results import other_explained
from pipelines.console.tables import Table
from pipelines.jobs.found import Found, count_law_of, read_found
from pipelines.jobs.results import ESTIMATES
from pipelines.jobs.table_files import read_csv_rows
from pipelines.outputs.summary import HopSummary

_SHOWN = 12
_SHOWN_BINS = 5
_HASH_DIGITS = 16


def _grid(rows: Iterable[tuple[str, str]]) -> Padding:
    grid = table.Table.grid(padding=(0, 2))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    for head, text in rows:
        grid.add_row(head, text)
    return Padding(grid, (0, 0, 0, 2))


def _tell(console: Console, party: str, did: str, saw: str, blind: str) -> None:
    console.print(party, style="bold")
    console.print(_grid((("did", did), ("saw", saw), ("could not see", blind))))


def tell_glossary(console: Console, words: Iterable[tuple[str, str]]) -> None:
    """Explain the words of the output."""
    console.print("Words", style="bold")
    console.print(_grid(words))


def tell_clients(console: Console, campaign: Campaign, scene: Scene, sent: HopSummary) -> None:
    """Tell what the clients did."""
    mechanism, title = campaign.require_frequency(), frequency_oracle(scene.mechanism).title
    size = campaign.sealed_bytes("reports")
    did = (
        f"randomised each value ({title}, {scene.mechanism}; epsilon {scene.epsilon:g}; {mechanism.report_bytes} "
        f"bytes) and sealed it: {sent.accepted_of('reports'):,} reports of {size} bytes each"
    )
    if campaign.discovery is not None:
        did += f"; and as many discovery reports of {campaign.sealed_bytes('discovery')} bytes each"
    _tell(console, "Clients", did, "their own value and the public campaign file", "anything of anyone else")


def tell_evaluator(console: Console, evaluations: int) -> None:
    """Tell what the evaluator of an oblivious campaign did."""
    did = f"made {evaluations:,} evaluations, one for each client whatever its value, each with a proof of its key"
    saw = "who asked and when, and random points of a curve"
    _tell(console, "Evaluator", did, saw, "any value, any report, or whether there was a value to discover")


def tell_shuffler(console: Console, campaign: Campaign, mixed: HopSummary) -> None:
    """Tell what the shuffler did."""
    rejected = ", ".join(f"{number:,} {reason}" for reason, number in mixed.rejected.items()) or "nothing"
    streams = mixed.streams
    parts = " and ".join(f"{counts.accepted:,} in the stream {name}" for name, counts in streams.items())
    did = (
        f"dropped {rejected}, kept at most {campaign.shuffle.cap} report of a client"
        f"{' in each stream' if len(streams) > 1 else ''}, stripped all metadata, permuted {mixed.accepted:,} reports"
        f"{f': {parts}' if len(streams) > 1 else ''}"
    )
    saw = "who sent something and when: a client token, an address, a time"
    _tell(console, "Shuffler", did, saw, "any value: it holds no key that opens a report")


def tell_discovery(
    console: Console,
    scene: Scene,
    campaign: Campaign,
    released: HopSummary,
    directory: Path,
    truth: Counter[str],
    seen: Bins | None,
) -> dict[str, Any]:
    """Tell what the auxiliary server did, which values were found, and which were withheld.

    Args:
        directory: output of discovery.
        truth: true number of clients of each value.
        seen: the auxiliary server's bins, to show the largest; None: no bin is shown.
    """
    rule = campaign.require_keep_rule()
    even = rule.count_for(0.5)
    did = (
        f"counted {released.accepted:,} sealed values by their hash: equal hashes are a bin. Kept "
        f"{released.bins.kept if released.bins else 0:,} bins (a bin of {even} clients is kept with "
        f"probability {100 * rule.keep_probability(even):.3g} %), and "
        f"released each bin's sealed value{' and noisy count' if rule.counts else ''}"
    )
    guesses = f"can test a{'n' if scene.thing[0] in 'aeiou' else ''} {scene.thing} that it guesses"
    if campaign.is_oblivious:
        guesses = "cannot test a guess"
    saw = f"hashes and how often each came (it {guesses})"
    _tell(console, "Auxiliary server", did, saw, "any value, any sender")
    if seen is not None:
        _show_bins(console, rule, seen)
    revealed, law = read_found(directory, campaign), count_law_of(campaign, released.senders)
    known = campaign.read_dictionary() or ()
    unlisted = {value: count for value, count in truth.items() if value not in known}
    chances = [rule.keep_probability(count) for count in unlisted.values()]
    expected, spread = sum(chances), math.sqrt(sum(chance * (1.0 - chance) for chance in chances))
    withheld = sorted((count for value, count in unlisted.items() if value not in set(revealed.items)), reverse=True)
    lacks = "that nobody listed" if campaign.dictionary is None else "that the dictionary lacks"
    text = Text.assemble(
        (f"{len(revealed.items)} {scene.things} found", "bold"),
        f" {lacks}, {expected:.1f} ± {spread:.1f} expected. The other {len(withheld):,} unlisted {scene.things} are "
        f"withheld on purpose: at most {max(withheld, default=0)} clients sent each of them.",
    )
    console.print(Padding(text, (0, 0, 0, 2)))
    counts = {} if law is None else _tell_counts(console, scene, revealed, truth, law)
    figures = {"found": len(revealed.items), "expected": expected, "expected_deviation": spread}
    return {**figures, "withheld": len(withheld), **counts}


def _show_bins(console: Console, rule: KeepRule, seen: Bins) -> None:
    """Show the largest bins, and one bin of each of several sizes at which chance decides."""
    order = np.argsort(-seen.counts, kind="stable")
    even = rule.count_for(0.5)
    unsure = [int(np.count_nonzero(seen.counts > count)) for count in range(even + 6, even - 7, -3)]
    places = dict.fromkeys((*range(_SHOWN_BINS), *unsure))
    bins = [
        (bytes(seen.pairs[at]), int(seen.counts[at])) for at in (order[place] for place in places if place < len(order))
    ]
    cells = [
        (f"{pair[:HASH_BYTES].hex()[:_HASH_DIGITS]}...", f"{count:,}", f"{100 * rule.keep_probability(count):.3g} %")
        for pair, count in bins
    ]
    line = f"  the {_SHOWN_BINS} largest of {len(order):,} bins, and some of those for which chance decides"
    show((Table("", ("hash", "reports", "chance to be revealed"), cells), line), console)


def _tell_counts(console: Console, scene: Scene, found: Found, truth: Counter[str], law: CountLaw) -> dict[str, Any]:
    """Show the counts of discovered values beside the true counts, and the errors beside the predicted errors."""
    rows = [] if found.counts is None else found.counts.to_pylist()
    if not rows:
        return {}
    true = np.array([truth[row["item"]] for row in rows], dtype=np.int64)
    errors = np.array([row["count"] for row in rows]) - true
    low, high = (np.array([row[name] for row in rows]) for name in ("low", "high"))
    cells = [
        (row["item"], f"{c:,}", f"{row['count']:,.1f}", f"{row['low']:,.0f} to {row['high']:,.0f}", f"{error:+.1f}")
        for row, c, error in zip(rows[:_SHOWN], true, errors, strict=False)
    ]
    error, predicted = math.sqrt(float((errors**2).mean())), law.standard_deviation
    bias, expected = float(errors.mean()), float(kept_bias(law, true).mean())
    within = int(((low <= true) & (true <= high)).sum())
    line = (
        f"  {_part(len(cells), len(rows), f'{scene.things} found')}; {within} of {len(rows):,} intervals hold the "
        f"truth; their error is {error:.2f} (root mean square), predicted {predicted:.2f}; mean error {bias:+.2f}, "
        f"predicted {expected:+.2f} ± {predicted / math.sqrt(len(rows)):.2f}: near the threshold, noise that raises a "
        "count also lets its value be found"
    )
    heads = (scene.thing, "truth", "count", "95 % interval", "error")
    show((Table("", heads, cells, words=(scene.thing,)), line), console)
    return {
        "intervals_holding": within,
        "error": error,
        "predicted_error": predicted,
        "bias": bias,
        "predicted_bias": expected,
    }


def tell_analyzer(
    console: Console,
    scene: Scene,
    campaign: Campaign,
    analyzed: HopSummary,
    directory: Path,
    truth: Counter[str],
) -> dict[str, Any]:
    """Tell what the analyzer did, and show estimates beside the truth."""
    encoder = campaign.require_frequency().encoder
    sketch, estimated = "", "estimated every item"
    if isinstance(encoder, Pool):
        sketch = (
            f" into a sketch: a matrix of {encoder.rows:,} rows, one a hash function, with {encoder.cells:,} cells each"
        )
    if campaign.dictionary is None:
        estimated = f"estimated every {scene.thing} that was found (its discovery reveals no counts)"
    did = f"opened {analyzed.received:,} reports, tallied {analyzed.accepted:,}{sketch}; {estimated}"
    saw = "randomised reports in random order" + (
        f"; the {scene.things} that were released" if campaign.discovery else ""
    )
    _tell(console, "Analyzer", did, saw, "who sent what, when, or in what order")
    if not (directory / ESTIMATES).exists():
        console.print(f"  no {scene.thing} was found, so none is estimated")
        return {"items": 0}
    columns = ("item", "count", "standard_error", "collision_error", "low", "high")
    rows = sorted(read_csv_rows(str(directory / ESTIMATES), columns), key=lambda row: -truth[row["item"]])
    cells, scores, within = [], [], 0
    for row in rows:
        true, count = truth[row["item"]], float(row["count"])
        error = math.hypot(float(row["standard_error"]), float(row["collision_error"]))
        scores.append((count - true) / error)
        within += float(row["low"]) <= true <= float(row["high"])
        cells.append((row["item"], f"{true:,}", f"{count:,.0f}", f"{error:,.0f}", f"{scores[-1]:+.2f}"))
    heads, worst = (scene.thing, "truth", "estimate", "standard error", "z"), max(map(abs, scores))
    held = f"{100 * within / len(rows):.1f} % of all 95 % intervals hold the truth"
    shown = _part(min(_SHOWN, len(rows)), len(rows), scene.things)
    # The median of the largest of so many independent normal |z|.
    usual = NormalDist().inv_cdf((1.0 + 0.5 ** (1.0 / len(rows))) / 2.0)
    lines = [f"  {shown}; {held}; largest |z| of all {worst:.2f}, about {usual:.1f} is usual for {len(rows):,}"]
    if analyzed.estimates is not None and analyzed.estimates.explained is not None:
        unlisted = sum(truth.values()) - sum(truth[row["item"]] for row in rows)
        lines.append(f"  {other_explained(analyzed.estimates.explained)} Truth of \u201cother\u201d: {unlisted:,}.")
    show((Table("", heads, cells[:_SHOWN], words=(scene.thing, "standard error")), *lines), console)
    mean_square = sum(score**2 for score in scores) / len(scores)
    return {"items": len(rows), "intervals_holding": within, "largest_z": worst, "mean_square_z": mean_square}


def _part(shown: int, total: int, things: str) -> str:
    """Return which rows of a table are shown."""
    return f"the {shown:,} most frequent of {total:,} {things}"
