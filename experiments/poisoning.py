"""What a result says when 1 % of its clients forge: `python -m experiments.poisoning` in a checkout.

It counts honest and poisoned batches of clients with items by Zipf's law, and prints for each batch how many of the
true 20 most frequent items have the 20 largest counts, how many items the forgers lifted, and the flags of the result.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray, Reports
from hushcount.maths.objectives import Objective
from hushcount.oracles import flagging
from hushcount.oracles.catalogue import build, plan
from hushcount.oracles.flags import Flags
from hushcount.oracles.influence import FORGERS, influence, influence_sentence
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.repeats import add_repeats, new_repeats
from hushcount.oracles.simulation import SeededWords
from hushcount.oracles.tally import Tally

_DOMAIN, _EPSILON, _TOP = 1000, 1.0, 20
_MECHANISMS = ("ais", "oue", "hr", "grr")
_CANDIDATES = 4000


@dataclass(frozen=True, eq=False)
class Result:
    """What the analyzer learns of a batch: unbiased counts, float64[d] users, and flags."""

    count: FloatArray
    flags: Flags


def analyzed(mechanism: Mechanism, reports: Reports) -> Result:
    """Count reports as the analyzer does."""
    n, items = len(reports), np.arange(_DOMAIN, dtype=np.uint64)
    counts, repeats = mechanism.new_tally(items), new_repeats(mechanism)
    mechanism.accumulate(counts, reports, items)
    add_repeats(repeats, mechanism, reports)
    estimated = mechanism.counts(Tally(counts, n, items), items)
    law = mechanism.encoder.totals(mechanism.responder, items)
    flags = Flags(
        repeated=flagging.repeated(mechanism, repeats, n, 1, FORGERS),
        totals=flagging.totals(law, int(counts.sum()), n, 1, FORGERS),
        counts=flagging.counts(mechanism, estimated, n, 1, FORGERS),
    )
    return Result(estimated, flags)


def attacks(mechanism: Mechanism, number: int, words: SeededWords) -> Iterator[tuple[str, Reports]]:
    """Yield the reports of `number` forgers by several attacks, each with its name."""
    rare = np.full(_CANDIDATES, _DOMAIN - 1, dtype=np.uint64)
    drawn = mechanism.encode(rare, words)
    chosen = drawn[mechanism.supports(drawn, rare)][:1]
    yield "all repeat one report", np.repeat(chosen, number)
    yield "each draws afresh for one rare item", mechanism.encode(rare[:1].repeat(number), words)
    if "bits" in (mechanism.report.names or ()):
        ones = np.zeros(number, dtype=mechanism.report)
        ones["bits"] = 255
        yield "all set every bit", ones


def lines(name: str, clients: int, batches: int, seed: int) -> Iterator[str]:
    """Yield what is printed of one mechanism."""
    mechanism = build(name, _EPSILON, _DOMAIN, plan(name, _EPSILON, _DOMAIN, {}, Objective("l2"), ""))
    shares = 1.0 / np.arange(1, _DOMAIN + 1)
    drawn = np.random.default_rng(seed)
    yield f"{name}, epsilon {_EPSILON:g}, {_DOMAIN:,} items, {clients:,} clients"
    yield f"  {influence_sentence(influence(mechanism))}"
    forgers = round(FORGERS * clients)
    raised = 0
    for batch in range(batches):
        held = drawn.choice(_DOMAIN, clients, p=shares / shares.sum()).astype(np.uint64)
        honest = mechanism.encode(held, SeededWords(seed, batch))
        before = analyzed(mechanism, honest)
        raised += bool(before.flags.raised)
    bound = 3 * batches * flagging.CHANCE
    yield f"  honest: {raised} of {batches} batches flagged (any with probability {bound:.2g} at most)"
    yield _said("honest", before, before)
    for attack, forged in attacks(mechanism, forgers, SeededWords(seed, batches)):
        yield _said(attack, analyzed(mechanism, np.concatenate([honest[forgers:], forged])), before)


def _said(attack: str, after: Result, before: Result) -> str:
    moved = after.count - before.count
    lifted = int((moved > 0.5 * float(moved.max())).sum()) if moved.any() else 0
    found = int((np.argsort(-after.count)[:_TOP] < _TOP).sum())
    verdicts = ", ".join(
        f"{kind} {flag.verdict}"
        for kind, flag in (
            ("equal reports", after.flags.repeated),
            ("supports", after.flags.totals),
            ("counts", after.flags.counts),
        )
    )
    text = (
        f"  {attack}: {found} of the true {_TOP} most frequent items are found; {lifted} items lifted, by "
        f"{max(float(moved.max()), 0.0):,.0f} users at most\n    {verdicts}"
    )
    return "\n    ".join([text, *after.flags.raised])


def main() -> None:
    """Print what the results of all asked mechanisms say."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("mechanisms", nargs="*", default=_MECHANISMS)
    parser.add_argument("--clients", type=int, default=100_000)
    parser.add_argument("--batches", type=int, default=10, help="honest batches of each mechanism")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    for name in asked.mechanisms:
        for line in lines(name, asked.clients, asked.batches, asked.seed):
            print(line, flush=True)


if __name__ == "__main__":
    main()
