"""Each answer of a collector has one meaning; only its own refusal gives a report up."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.delivery.exchange import Reply
from hushcount.delivery.verdicts import Verdict, evaluation_verdict, verdict
from hushcount.delivery.waits import LONGEST_WAIT, pause, random_seconds
from service.refusals import MEDIA_TYPE, Refused
from shuffler.collector import refusals
from tests.support.documented import reasons_of

REASONS = {reason.name: reason for reason in reasons_of(refusals)}
HTML = Reply(403, {"content-type": "text/html"}, b"<html>Pay for the network of this hotel")


def refusal(name: str, **headers: str) -> Reply:
    """Return the answer that a collector gives for a reason."""
    refused = Refused(REASONS[name], "detail", most_bytes=7)
    return Reply(refused.reason.status, {"content-type": MEDIA_TYPE.decode(), **headers}, refused.body)


def test_every_refusal_of_a_collector_has_its_meaning(subtests: pytest.Subtests) -> None:
    for name in sorted(REASONS):
        with subtests.test(name=name):
            status = REASONS[name].status
            fates = {
                "epoch_closed": "closed",
                "unknown_fingerprint": "closed",
                "epoch_not_begun": "again",
                "window_over": "again",
                "too_long": "smaller",
                "too_many_reports_at_once": "smaller",
            }
            later = status in (408, 425, 429) or status >= 500
            assert verdict(refusal(name), 2) == Verdict(fates.get(name, "again" if later else "dropped"), name)
            if fates.get(name) == "smaller":
                assert verdict(refusal(name), 1) == Verdict("dropped", name)


def test_only_202_says_that_a_report_is_on_disk() -> None:
    assert verdict(Reply(202, {}, b""), 3) == Verdict("sent")
    for status in (100, 200, 201, 204, 301, 307, 403, 404):
        for kind in ("text/html", "application/json", ""):
            reply = Reply(status, {"content-type": kind}, json.dumps({"type": "urn:hushcount:problem:sent"}).encode())
            assert verdict(reply, 1) == Verdict("refused", "no_collector")
    assert verdict(HTML, 1).fate == "refused"


@given(st.integers(100, 999), st.binary(max_size=300), st.sampled_from(["application/octet-stream", "text/html"]))
def test_only_200_with_the_right_length_is_an_evaluators_answer(status: int, body: bytes, kind: str) -> None:
    given_ = evaluation_verdict(Reply(status, {"content-type": kind}, body), 2)
    assert given_.fate == ("smaller" if status == 413 else "again")
    right = evaluation_verdict(Reply(status, {"content-type": kind}, bytes(2 * 32 + 64)), 2)
    assert (right.fate == "sent") == (status == 200 and kind == "application/octet-stream")


def test_retry_after_counts_in_seconds(subtests: pytest.Subtests) -> None:
    cases = [("5", 5.0), ("999999999999", LONGEST_WAIT), ("1" * 5000, LONGEST_WAIT), ("0", 0.0)] + [
    (text, 0.0) for text in ("", "-5", "5.5", "Wed, 21 Oct 2026 07:28:00 GMT", "\u0665", "1e9", " 5")
]  # fmt: skip
    for asked, waits in cases:
        with subtests.test(asked=asked):
            assert verdict(refusal("queue_full", **{"retry-after": asked}), 1) == Verdict("again", "queue_full", waits)


@given(st.integers(100, 999), st.binary(max_size=300), st.booleans())
def test_any_answer_has_a_meaning_and_a_reason_of_letters(status: int, body: bytes, problem: bool) -> None:
    kind = MEDIA_TYPE.decode() if problem else "text/html"
    given_ = verdict(Reply(status, {"content-type": kind}, body), 1)
    later = status in (408, 425, 429) or status >= 500
    assert given_.fate == {202: "sent", 413: "dropped"}.get(status, "again" if later else "refused")
    assert given_.reason.replace("_", "").isalnum() or status == 202


def test_a_name_that_no_collector_gives_is_not_repeated(subtests: pytest.Subtests) -> None:
    for name in ["", "A", "a b", "a\n", "x" * 41, "é", 7, None, ["epoch_closed"]]:
        with subtests.test(name=name):
            kind = f"urn:hushcount:problem:{name}" if isinstance(name, str) else name
            reply = Reply(400, {"content-type": "application/problem+json"}, json.dumps({"type": kind}).encode())
            assert verdict(reply, 1) == Verdict("refused", "no_collector")


def test_a_problem_of_more_than_16_kib_is_none() -> None:
    for length, fate in [(1 << 14, "dropped"), ((1 << 14) + 1, "refused")]:
        body = json.dumps({"type": "urn:hushcount:problem:wrong_type"}).encode().ljust(length)
        assert verdict(Reply(400, {"content-type": MEDIA_TYPE.decode()}, body), 1).fate == fate


def test_pauses_double_to_an_hour_and_half_of_each_is_random() -> None:
    for failures in range(1, 40):
        whole = min(3600.0, 5.0 * 2 ** (failures - 1))
        drawn = [pause(failures) for _ in range(100)]
        assert all(whole / 2 <= seconds <= whole for seconds in drawn)
        # 100 draws miss the lower or the upper half of the range with probability 2**-99.
        assert min(drawn) < 0.75 * whole < max(drawn)
    assert 60.0 < pause(1, 60.0) <= 65.0
    for failures in (1, 100):
        assert LONGEST_WAIT - 1800.0 <= pause(failures, 1e12) <= LONGEST_WAIT


def test_delays_are_uniform() -> None:
    # Chi-square of 20 cells, 4000 draws. It accepts below 75: a right law fails with probability 1.3e-8; one that never
    # falls in one of the cells is above 200 in the mean.
    counts = [0] * 20
    for _ in range(4000):
        counts[int(random_seconds(600.0) / 30.0)] += 1
    assert sum((count - 200) ** 2 / 200 for count in counts) < 75.0
    assert random_seconds(0.0) == 0.0
