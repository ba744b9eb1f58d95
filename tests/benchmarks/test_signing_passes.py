"""The benchmark of an issuer's signatures measures both sides."""

from __future__ import annotations

from benchmarks.signing_passes import measure


def test_the_benchmark_of_signatures_measures_both_sides() -> None:
    found = measure(1)
    assert found["passes"] == 24
    assert min(found["issuer_ms"], found["openssl_ms"], found["ratio"]) > 0
