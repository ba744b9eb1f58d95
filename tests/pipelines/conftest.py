"""One set of keys, one dictionary, one file of values, and each mechanism's chain of jobs run once for the session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.hushcount.delivery.fake_collector import FakeCollector, collecting, policy
from tests.support.jobs import BEAM, Chain, new_campaign, new_keys, values_of, write_lines
from tests.support.stub_store import StubStore

LISTED = {
    "alpha": 900,
    "beta": 600,
    "gamma": 400,
    "delta": 250,
    "two words": 150,
    "größe": 120,
    "日本語": 90,
    '"quoted", and comma': 70,
    "<script>alert(1)</script>": 50,
    "$x^2$": 30,
    "nobody": 0,
    "also nobody": 0,
}
"""True counts of the dictionary's items."""

POPULAR = {"plantedsecret": 260, "zweiter Fund, ü": 180}
"""Values outside the dictionary that so many send that the keep rule keeps them for certain."""

RARE = {f"raresecret{index}": 1 + index % 2 for index in range(40)}
"""Values outside it that one or two clients send: all together kept with probability below 1e-6."""

TRUTH = {**LISTED, **POPULAR, **RARE}
TOTAL = sum(TRUTH.values())
OUTSIDE = sum(POPULAR.values()) + sum(RARE.values())

POOL = ("--set", "k=512", "--set", "m=64")
REPRESENTATIVE = {
    "gcms": ("gcms", 2.0, POOL),
    "ocms": ("ocms", 2.0, ()),
    "ais": ("ais", 2.0, ()),
    "ss": ("ss", 2.0, ()),
    "grr": ("grr", 2.0, ()),
    "wss": ("wss", 2.0, ()),
    "oue": ("oue", 2.0, ()),
    "hcms": ("hcms", 3.0, POOL),
    "rhr": ("rhr", 3.0, ()),
    "open": ("gcms", 2.0, POOL),
}
"""Campaigns by name: mechanism, epsilon, further options; one for each way to encode, to answer and to tally. "open"
has no dictionary."""

ON_BEAM = (pytest.mark.beam, pytest.mark.long)
"""Marks of a case that is run once more on Beam's engine: that of the property which an engine could break."""


@dataclass(frozen=True)
class World:
    """What all tests of the jobs share. Nobody writes to these files."""

    root: Path
    keys: Path
    dictionary: Path
    values: Path
    items: Path


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("world")
    return World(
        root,
        new_keys(root / "keys"),
        write_lines(root / "dictionary.txt", LISTED),
        write_lines(root / "values.txt", values_of(TRUTH)),
        write_lines(root / "items.txt", [*LISTED, *POPULAR, "never sent"]),
    )


@pytest.fixture(scope="session")
def collected(world: World) -> Callable[[str], Chain]:
    """Return the chain of a name of REPRESENTATIVE: encoded, shuffled and analysed once.

    "ais" carries discovery too, and its jobs run on Beam's own engine, whatever --engine says.
    """

    @cache
    def run(name: str) -> Chain:
        mechanism, epsilon, options = REPRESENTATIVE[name]
        path = new_campaign(
            world.root / f"{name}.json",
            world.keys,
            *options,
            mechanism=mechanism,
            epsilon=epsilon,
            dictionary=None if name == "open" else world.dictionary,
            discovery=1.0 if name == "ais" else None,
        )
        chain = Chain(path, world.keys)
        engine = BEAM if name == "ais" else ()
        chain.encode(world.values, *engine)
        chain.shuffle(*engine)
        chain.analyze(*engine)
        return chain

    return run


@pytest.fixture
def store() -> Iterator[type[StubStore]]:
    """An object store, empty before and after."""
    StubStore.clear()
    yield StubStore
    StubStore.clear()


@pytest.fixture(params=["plain", pytest.param("beam", marks=ON_BEAM)])
def either_engine() -> None:
    """Run a test on the engine of all tests, and in the long run on Beam's own, whatever room the test is in."""


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with collecting() as one:
        yield one


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    path = tmp_path / "policy.json"
    path.write_text(policy().text())
    return path
