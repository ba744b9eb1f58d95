"""An evaluator's manifests come from another machine: none is read whose window is no time, or no window's length."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluator.manifests import read_evaluation_manifest
from hushcount.errors import FormatError

MANIFEST: dict[str, Any] = {
    "evaluator": "one",
    "campaign": "words",
    "epoch": 1,
    "fingerprint": "0" * 64,
    "key": None,
    "window": "20261121T000000Z",
    "seconds": 3600,
    "authentication": "none",
}


def written(**changes: Any) -> bytes:
    return json.dumps({**MANIFEST, **changes}).encode()


def test_a_window_that_is_no_time_is_refused(subtests: pytest.Subtests) -> None:
    for window in ["20269999T999999Z", "19691231T235959Z", "90000101T000000Z", "2026"]:
        with subtests.test(window=window):
            assert read_evaluation_manifest(written(), "m").window == MANIFEST["window"]
            with pytest.raises(FormatError, match=f"window is '{window}'"):
                read_evaluation_manifest(written(window=window), "m")


def test_a_length_that_no_window_has_is_refused(subtests: pytest.Subtests) -> None:
    for seconds in [0, 366 * 86_400 + 1]:
        with subtests.test(seconds=seconds):
            assert read_evaluation_manifest(written(seconds=366 * 86_400), "m").seconds == 366 * 86_400
            with pytest.raises(FormatError, match="seconds"):
                read_evaluation_manifest(written(seconds=seconds), "m")


def test_counts_of_refusals_are_bounded() -> None:
    most = {f"reason_{index}": 1 << 40 for index in range(256)}
    assert read_evaluation_manifest(written(clients={"refused": most}), "m").clients.refused == most
    for refused in ({**most, "other": 1}, {"other": (1 << 40) + 1}, {"Other": 1}):
        with pytest.raises(FormatError, match="refused"):
            read_evaluation_manifest(written(clients={"refused": refused}), "m")
