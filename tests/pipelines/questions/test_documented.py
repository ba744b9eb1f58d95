"""The example of docs/analysts.md is what `hushcount ask change` answers to the data that the page describes."""

from __future__ import annotations

import io
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.calibration_changes import Scene
from hushcount.campaigns.dictionary import Dictionary, in_random_order, items_of, tally_items
from hushcount.oracles.simulation import SeededWords
from hushcount.oracles.tally import Tally
from hushcount.questions.counted import Counted
from pipelines.console.answer import show
from pipelines.questions import answers, sides
from pipelines.questions.selection import Chosen
from pipelines.questions.sources import Place, Source
from pipelines.questions.spans import Span
from tests.support.collecting import DAY

PAGE = Path(__file__).parents[3] / "docs" / "analysts.md"
NAMES = tuple(f"screen/{('help', 'profile', 'search', 'home', 'cart')[n % 5]}/{n}" for n in range(100))
RISER = "screen/search/7"
REPORTS, FIRST = 20_000, datetime(2026, 11, 23, tzinfo=timezone.utc)


def held_on(day: int) -> np.ndarray:
    """Return how many reports of a day hold each item: 2 % or 4 % the riser, the rest all others in equal parts."""
    riser = round((0.02 if day < 7 else 0.04) * REPORTS)
    each, left = divmod(REPORTS - riser, len(NAMES) - 1)
    return np.array([riser if name == RISER else each + (name == NAMES[0]) * left for name in NAMES])


def test_the_change_that_analysts_are_shown_is_the_answer_to_the_data_that_they_are_told() -> None:
    scene = Scene("", "ss", 2.0, np.full(len(NAMES), 0.01), (REPORTS, REPORTS))
    scene.__dict__["dictionary"] = dictionary = Dictionary(in_random_order(NAMES))
    campaign = scene.campaign("ab" * 32).model_copy(update={"id": "ios"})
    mechanism, places, results = campaign.require_frequency(), [], []
    items, columns = items_of(mechanism, dictionary, NAMES), tally_items(mechanism)
    for day in range(14):
        counts = mechanism.new_tally(columns)
        held = np.repeat(items, held_on(day))
        mechanism.accumulate(counts, mechanism.encode(held, SeededWords(1, day)), columns)
        window = f"{FIRST + day * DAY:%Y%m%dT%H%M%SZ}"
        results.append(Counted(campaign, Tally(counts, REPORTS, columns), window))
        results[-1].__dict__["dictionary"] = dictionary
        places.append(Place(window, campaign, ""))
    source = Source("ios", tuple(places))
    source.__dict__["counted"] = tuple(results)
    stream = io.StringIO()
    answer = answers.difference("change", sides.of_windows(source, Span(7)), Chosen(), 10, None)
    show(answer.people, Console(file=stream, width=160, highlight=False, markup=False, emoji=False))
    said = [line.rstrip() for line in stream.getvalue().splitlines() if line.strip() and not line.startswith("─")]
    page = PAGE.read_text(encoding="utf-8")
    for line in said:
        assert line in page, stream.getvalue()
