"""A step of a stream may run twice: a bundle that runs again gives the same, and nothing is drawn or chosen anew."""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aux_server import keep
from hushcount.errors import HushcountError
from tests.pipelines.streaming.test_stream import collected, counted
from tests.support import plain_engine
from tests.support.site import Site, account_at
from tests.support.streams import streaming

SHUFFLED_ANEW = {"MixShard", "_WriteDead"}
"""Steps that put what they have into a random order: the same records, which nobody saw before they were counted."""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return collected(tmp_path)


@pytest.fixture
def twice(site: Site, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The steps with a bundle that ran twice."""
    real: Callable[[Any, Any], dict[Any, list[Any]]] = plain_engine._through
    ran: set[str] = set()

    def through(transform: Any, values: list[Any]) -> dict[Any, list[Any]]:
        kind = type(transform.fn).__name__
        first, second = (real(transform, values) for _ in range(2))
        same = [_unordered if kind in SHUFFLED_ANEW else pickle.dumps] * 2
        assert {tag: [*map(same[0], one)] for tag, one in first.items()} == {
            tag: [*map(same[1], one)] for tag, one in second.items()
        }, kind
        if values:
            ran.add(kind)
        return second

    monkeypatch.setattr(plain_engine, "_through", through)
    return ran


def _unordered(value: Any) -> Any:
    """Return what is equal for equal bytes in whatever order."""
    if isinstance(value, tuple):
        return tuple(map(_unordered, value))
    return bytes(sorted(value)) if isinstance(value, bytes) else value


def test_every_bundle_gives_the_same_when_it_runs_again(site: Site, twice: set[str]) -> None:
    with streaming(site.deployment) as ran:
        assert site.run(5.1, sure=True).problems == []
    assert [hop for hop, _ in ran] == ["shuffle", "release", "discover", "analyze"]
    expected = {
        "Separate", "RefuseOverCap", "MixShard", "TagReleased", "OpenPairs", "CountOnce", "Keep", "InDrawnOrder",
        "Reveal", "OpenReports", "SplitRows", "WriteTallyPart", "_WriteShard", "_WriteCounts",
    }  # fmt: skip
    assert twice >= expected - {"TagReleased"}
    assert [received for received, *_ in counted(site)] == [200, 201, 202]
    assert account_at(site, 5.2, digests=True).differences == []


@pytest.mark.usefixtures("twice")
def test_a_step_that_draws_anew_is_noticed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keep, "in_drawn_order", lambda _, records: [*records, secrets.token_bytes(8)])
    with pytest.raises(HushcountError, match=r"AssertionError.*step '.*in random order'"), streaming(site.deployment):
        site.run(5.1, sure=True)
