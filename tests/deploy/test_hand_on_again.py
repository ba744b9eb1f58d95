"""deploy/hand_on.py believes nothing that lies at a recipient's: what is not as it was made is handed on again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from tests.deploy.handing_on import hands, inside, shuffled
from tests.support.jobs import files_under, summary
from tests.support.site import Site
from tests.support.stub_store import StubStore


def altered(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


def cut(content: bytes) -> bytes:
    return content[:-9]


def of_another(_content: bytes) -> bytes:
    return b"{}"


DAMAGES: tuple[tuple[str, Callable[[bytes], bytes] | None], ...] = (
    ("*.blocks", None),
    ("*.blocks", cut),
    ("*.blocks", altered),
    ("summary.json", cut),
    ("summary.json", of_another),
    ("summary.json", None),
    ("summary.json.sig", None),
    ("summary.json.sig", altered),
)
"""Which file of a copy, and what becomes of it; None: it is deleted."""


@pytest.fixture
def umask() -> Iterator[None]:
    """The widest that a service is started with."""
    before = os.umask(0)
    yield
    os.umask(before)


def damaged(copy: Path, pattern: str, damage: Callable[[bytes], bytes] | None) -> None:
    path = next(copy.rglob(pattern))
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))


@pytest.mark.parametrize("signed", [True, False])
def test_a_copy_that_is_not_as_it_was_made_is_handed_on_again(
    hand_on: ModuleType, site: Site, umask: None, signed: bool
) -> None:
    shuffler, batch = shuffled(site)
    if not signed:
        (inside(batch) / "summary.json.sig").unlink()
        # It lists no files then.
        described = summary(batch)
        del described["files"]
        (batch / "summary.json").write_text(json.dumps(described))
    to = site.root / "to"
    asked = hands(hand_on, f"shuffled/reports={to}")
    hand_on.hand_on(shuffler, asked)
    whole = files_under(to)
    for pattern, damage in DAMAGES if signed else DAMAGES[:6]:
        damaged(to, pattern, damage)
        was = files_under(to)
        assert was != whole
        marked = (to / "words" / batch.name / "summary.json").exists()
        line = f"handed on{' again' if marked else ''}: words/{batch.name} reports"
        assert hand_on.hand_on(shuffler, asked) == ([line], []), (pattern, damage)
        assert files_under(to) == whole
        assert hand_on.hand_on(shuffler, asked) == ([], [])
    added = inside(to / "words" / batch.name) / "reports" / "planted"
    added.write_bytes(b"planted")
    assert hand_on.hand_on(shuffler, asked)[1] == []
    assert files_under(to) == whole
    modes = {oct(path.stat().st_mode & 0o7777) for path in to.rglob("*") if path.is_file()}
    folders = {oct(path.stat().st_mode & 0o7777) for path in (to, *to.rglob("*")) if path.is_dir()}
    assert (modes, folders) == ({"0o600"}, {"0o700"})


def test_what_a_store_holds_of_a_copy_is_compared_too(hand_on: ModuleType, site: Site, store: type[StubStore]) -> None:
    shuffler, batch = shuffled(site)
    asked = hands(hand_on, "shuffled/reports=stub://to")
    hand_on.hand_on(shuffler, asked)
    whole = dict(store.objects)
    (name,) = (name for name in whole if name.endswith(".blocks"))
    store.put(name, altered(whole[name]))
    assert hand_on.hand_on(shuffler, asked) == ([f"handed on again: words/{batch.name} reports"], [])
    del store.objects[name]
    assert hand_on.hand_on(shuffler, asked) == ([f"handed on again: words/{batch.name} reports"], [])
    assert store.objects == whole
    assert hand_on.hand_on(shuffler, asked) == ([], [])


def test_what_was_damaged_at_its_source_is_not_handed_on_and_harms_no_copy(hand_on: ModuleType, site: Site) -> None:
    shuffler, batch = shuffled(site)
    asked = hands(hand_on, f"shuffled/reports={site.root / 'to'}")
    hand_on.hand_on(shuffler, asked)
    whole = files_under(site.root / "to")
    block = next((inside(batch) / "reports").glob("*.blocks"))
    block.write_bytes(altered(block.read_bytes()))
    # The copy is what was signed; another one is not made of this.
    assert hand_on.hand_on(shuffler, asked) == ([], [])
    other = hands(hand_on, f"shuffled/reports={site.root / 'other'}")
    done, (problem,) = hand_on.hand_on(shuffler, other)
    assert done == []
    assert f"is not what {block} was when it was written" in problem
    assert not list((site.root / "other").rglob("summary.json"))
    block.unlink()
    assert hand_on.hand_on(shuffler, asked) == ([], [])
    unsigned = replace(shuffler, sign_with=None)
    (inside(batch) / "summary.json.sig").unlink()
    assert f"{inside(batch) / 'reports'} hold 0 records" in hand_on.hand_on(unsigned, asked)[1][0]
    assert files_under(site.root / "to") == whole
