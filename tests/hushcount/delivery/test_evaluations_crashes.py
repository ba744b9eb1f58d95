"""Of every value that was acknowledged exactly one discovery report arrives, whatever is killed and whoever fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hushcount.delivery.evaluating import evaluating, is_on_disk, pass_time, values
from tests.hushcount.delivery.fake_collector import EVALUATOR, Evaluate, answered, oblivious, refused, sender
from tests.hushcount.delivery.test_crashes import VALUES, end_claims, run

# Python 3.12 and later warn of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

KILLS = 15
"""Fewer may all miss the moment at which an evaluation is open."""


@pytest.mark.long
def test_a_process_that_is_killed_at_any_step_sends_one_report_of_each_value(tmp_path: Path) -> None:
    with evaluating() as one:
        whole = run(one, tmp_path / "whole", iter(range(-(10**9), 0)))
        assert whole[:-1] == list(VALUES)
        number = whole[-1] + 10**9
        assert values(one) == [None, "four", None, "five"]
        assert len(one.evaluations) == len(VALUES)
    blanks = 0
    for kill in range(KILLS):
        step = 1 + (number - 2) * kill // (KILLS - 1)
        folder = tmp_path / str(kill)
        with evaluating() as one:
            said = run(one, folder, iter(range(step, -(10**9), -1)))
            acknowledged = [value for value in said if value in VALUES]
            if folder.exists():
                assert not is_on_disk(folder, "four")
                end_claims(folder)
            after = sender(one, folder)
            done = after.deliver(early=True)
            assert (done.waiting, done.dropped) == (0, {})
            different = set(one.received("discovery"))
            charged = sum(line.reports for line in after.spent().streams if line.stream == "discovery")
            assert len(acknowledged) <= len(different) <= charged <= len(acknowledged) + 1, step
            assert len(set(one.evaluations)) == len(one.evaluations) <= len(different)
            # Of all that was acknowledged, only the last evaluation can have been open.
            names = [value for value in dict.fromkeys(values(one)) if value is not None]
            told = [value for value in acknowledged if value in ("four", "five")]
            assert len(set(told) - set(names)) <= 1
            blanks += len(set(told) - set(names))
    assert blanks > 0


FAULTS = st.sampled_from(
    [
        answered(),
        answered(),
        refused(503, "stopping"),
        refused(429, "too_many_evaluations"),
        refused(410, "key_destroyed"),
        refused(413, "too_many_evaluations_at_once"),
        lambda blinded: (200, "application/octet-stream", bytes(len(blinded) + 64)),
        lambda blinded: (200, "application/octet-stream", EVALUATOR.evaluate(blinded)[1:]),
        lambda _: (200, "text/html", b"<html>"),
    ]
)
Answer = tuple[int, str, dict[str, str]]
POSTS: st.SearchStrategy[Answer] = st.sampled_from(
    [(202, "", {}), (503, "queue_full", {}), (409, "epoch_closed", {}), (413, "too_long", {})]
)
ACTIONS = st.lists(
    st.one_of(
        st.sampled_from(["new", "one", "deliver", "early", "time passes", "next epoch", "other process"]),
        FAULTS,
        st.lists(POSTS, max_size=3),
    ),
    max_size=14,
)


@settings(max_examples=30)
@given(ACTIONS, st.booleans())
def test_every_report_is_sent_dropped_or_waiting_whatever_the_evaluator_does(actions: Any, keep_values: bool) -> None:
    with evaluating(max_age=0) as collector:
        one = sender(collector, keep_values=keep_values, most_queued=50)
        made = sent = 0
        for action in [*actions, "time passes", "early", "time passes", "early"]:
            one._present._due = 0.0
            if action in ("new", "one"):
                one.report(action)
                made += 2
            elif action in ("deliver", "early"):
                done = one.deliver(early=action == "early")
                sent += done.sent + sum(done.dropped.values())
                made += done.added
                assert made == sent + done.waiting
            elif action == "other process":
                # It knows no evaluation.
                one._evaluations.clear()
            elif action == "time passes":
                pass_time(one, 4000.0)
            elif action == "next epoch":
                collector.epochs.append(oblivious(collector.campaign))
            elif callable(action):
                evaluate: Evaluate = action
                collector.evaluate = evaluate
            else:
                collector.answers = list(action)
        collector.answers = []
        pass_time(one, 4000.0)
        assert one.deliver(early=True).waiting == 0
        assert one._evaluations._open == []
        received = collector.received("discovery")
        assert len(received) == len(set(received))
