"""Verify opened values with the evaluator: where names are asked for, the analyzer cannot make them itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from analyzer.reveal import judge
from hushcount.discovery.names import name_of
from hushcount.discovery.oblivious import MOST_EVALUATIONS, Ask, evaluations_of
from hushcount.discovery.pairs import DiscoveryFormat
from hushcount.reasons import Counted


def verify(
    form: DiscoveryFormat, analyzer: bytes, opened: Sequence[tuple[bytes, str]], ask: Ask, evaluator: bytes
) -> tuple[list[tuple[bytes, str]], Counter[Counted]]:
    """Ask for the name of each opened value, blinded, and believe those whose pairs honest clients make.

    Args:
        analyzer: its public key.
        opened: released records, each with its value.
        evaluator: its public key in the campaign.

    Returns:
        Those of `opened` that are believed, and counts as those of `Reveal`: of each, accepted or why it was refused.

    Raises:
        Unanswered: the evaluator does not answer, or does not prove its answer.
    """
    found: list[tuple[bytes, str]] = []
    counts: Counter[Counted] = Counter()
    for start in range(0, len(opened), MOST_EVALUATIONS):
        some = opened[start : start + MOST_EVALUATIONS]
        evaluations = evaluations_of([form.input(value) for _, value in some])
        outputs = evaluations.finish(ask(evaluations.blinded), evaluator)
        for (record, value), output in zip(some, outputs, strict=True):
            reason = judge(form, analyzer, record, value, name_of(output))
            counts[reason] += 1
            if reason == "accepted":
                found.append((record, value))
    return found, counts
