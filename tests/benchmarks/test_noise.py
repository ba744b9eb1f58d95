"""The benchmark of the mixes' noise measures what it says."""

from __future__ import annotations

from benchmarks.noise import dummy_seconds, from_counts, through_jobs


def test_errors_are_those_of_the_law_in_jobs_and_from_counts() -> None:
    """Bounds of more than 9 standard errors: 0.13 and 0.04 for the error, 0.7 % and 0.2 % for the share."""
    for found, slack in ((through_jobs(2000, 900), 1.2), (from_counts(20_000, 9000), 0.4)):
        assert abs(found.rms - 4.21) < slack
        assert abs(found.held - 0.958) < slack / 19


def test_the_dummies_of_each_engine_are_measured() -> None:
    found = [*dummy_seconds(300, 1)]
    assert {layers for _, layers, _, _ in found} == {1, 2}
    assert all(8000 < number < 10_000 and seconds > 0 for _, _, number, seconds in found)
