"""What parties state to each other: the latest that is believed counts, and whoever exchanges one is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hushcount.campaigns.public_keys import VerifyKeyPart
from keys.directories import active_key, create, verify_keys
from keys.roles import SigningRole
from pipelines.deployment.settings import Deployment
from pipelines.handover import statements
from pipelines.handover.statements import Kind, NamedEntry, Statement, all_names, names, put, read
from pipelines.outputs.counts import StreamCounts
from tests.support.collecting import START

BATCH, NEXT = (f"2026112{day}T000000Z-000001-{'a' * 16}" for day in (1, 2))
NAME = f"{BATCH}.shuffle.000001-0000000003-{'c' * 16}.json"
ROLES: tuple[SigningRole, ...] = ("shuffler", "aux_signer", "analyzer_signer")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two directories with a key of each party that signs."""
    root = tmp_path_factory.mktemp("keys")
    for name in ("keys", "other"):
        create(root / name, 30, ROLES)
    return root


@pytest.fixture
def here(made: Path, tmp_path: Path) -> Deployment:
    """A deployment, and these keys."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    (tmp_path / "deployment.toml").write_text('store = "store"\nwindows = {length = "1h", grace = "2h"}\n')
    return Deployment.read(tmp_path / "deployment.toml")


def said(
    kind: Kind = "receipt", *, batch: str = BATCH, number: int = 3, generation: int = 1, digest: str = "b"
) -> Statement:
    return Statement(
        kind=kind,
        party="analyzer" if kind == "receipt" else "shuffler",
        campaign="words",
        batch=batch,
        hop="shuffle",
        at=START,
        summary=digest * 64,
        streams={} if kind == "receipt" else {"reports": StreamCounts(9, 7, {"too_late": 2})},
        taken=7 if kind == "receipt" else None,
        after=NamedEntry(generation=generation, number=number, entry="c" * 64),
    )


def keys_of(here: Deployment, keys: str = "keys", role: SigningRole = "analyzer_signer") -> tuple[VerifyKeyPart, ...]:
    return verify_keys(here.base / keys, role)


def written(
    here: Deployment, *ones: Statement, keys: str | None = "keys", role: SigningRole = "analyzer_signer"
) -> Path:
    """Write receipts, signed unless there is no key; return their folder."""
    for one in ones:
        put(here, one, None if keys is None else active_key(here.base / keys, role))
    return Path(here.folder("receipts", "analyzer", "words"))


def found(here: Deployment, *, trusted: bool = True) -> tuple[dict[tuple[str, str], Statement], list[str]]:
    return read(here, "receipt", "analyzer", "words", keys_of(here) if trusted else ())


@pytest.mark.parametrize("trusted", [True, False])
def test_what_is_stated_is_read_as_it_was_written(here: Deployment, trusted: bool) -> None:
    one, other = said(), said(batch=NEXT)
    folder = written(here, one, other, keys="keys" if trusted else None)
    assert found(here, trusted=trusted) == ({(BATCH, "shuffle"): one, (NEXT, "shuffle"): other}, [])
    assert [path.name for path in folder.glob("*.json")].count(NAME) == 1
    stated = said("statement")
    put(here, stated, None)
    assert read(here, "statement", "shuffler", "words", ()) == ({(BATCH, "shuffle"): stated}, [])
    assert stated.streams["reports"].rejected == {"too_late": 2}


def test_of_several_the_one_after_the_latest_entry_counts(here: Deployment) -> None:
    latest = said(generation=2, number=1, digest="e")
    written(here, said(), said(number=11, digest="d"), latest)
    assert found(here) == ({(BATCH, "shuffle"): latest}, [])
    assert [one.order for _, one in sorted(names(here, "receipt", "analyzer", "words").items())] == [
        (1, 3),
        (1, 11),
        (2, 1),
    ]
    assert all_names(here, "receipt", "analyzer") == {"words": names(here, "receipt", "analyzer", "words")}
    assert all_names(here, "receipt", "shuffler") == {}


def test_what_nobody_asks_for_is_not_read(here: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    written(here, said(), said(batch=NEXT), said(batch=NEXT, number=2))
    opened, good = [], statements._read
    monkeypatch.setattr(statements, "_read", lambda path, *more: opened.append(path) or good(path, *more))
    told, _ = read(here, "receipt", "analyzer", "words", (), lambda batch, hop: (batch, hop) == (NEXT, "shuffle"))
    assert [*told] == [(NEXT, "shuffle")]
    # Nor one that a later one supersedes.
    assert [path.rpartition("/")[2] for path in opened] == [said(batch=NEXT).name]


EXCHANGED: dict[str, tuple[Callable[[Path, Deployment], object], str]] = {
    "nobody signed it": (lambda path, _: path.with_name(f"{NAME}.sig").unlink(), "is not signed"),
    "another key signed it": (lambda _, here: written(here, said(), keys="other"), "trusted are"),
    "another party signed it": (lambda _, here: written(here, said(), role="shuffler"), "trusted are"),
    "a byte is another": (
        lambda path, _: path.write_bytes(path.read_bytes().replace(b'"taken":7', b'"taken":8')),
        "the signature of the receipt",
    ),
    "the signature is no signature": (lambda path, _: path.with_name(f"{NAME}.sig").write_text("{}"), f"{NAME}.sig"),
    "it is no receipt": (lambda path, here: signed(path, here, b"{}"), "is not a receipt of a party"),
    "it is of another campaign": (
        lambda path, here: signed(path, here, path.read_bytes().replace(b'"words"', b'"others"')),
        "is a receipt that belongs in another place",
    ),
    "it is of another batch": (
        lambda path, here: signed(path, here, path.read_bytes().replace(BATCH.encode(), NEXT.encode())),
        "is a receipt that belongs in another place",
    ),
    "it is of another party": (
        lambda path, here: signed(path, here, path.read_bytes().replace(b'"analyzer"', b'"aux-server"')),
        "is a receipt that belongs in another place",
    ),
    "it is a statement": (
        lambda path, here: signed(path, here, path.read_bytes().replace(b'"receipt"', b'"statement"')),
        "is a receipt that belongs in another place",
    ),
}  # fmt: skip


def signed(path: Path, here: Deployment, data: bytes) -> None:
    """Write other bytes, with the signature of the party whose place it is."""
    path.write_bytes(data)
    signature = active_key(here.base / "keys", "analyzer_signer").sign(data, "receipt")
    path.with_name(f"{path.name}.sig").write_text(signature.model_dump_json())


@pytest.mark.parametrize(("exchange", "says"), EXCHANGED.values(), ids=EXCHANGED)
def test_what_is_not_as_its_party_signed_it_for_this_place_is_not_believed(
    here: Deployment, exchange: Callable[[Path, Deployment], object], says: str
) -> None:
    folder = written(here, said(), said(batch=NEXT))
    exchange(folder / NAME, here)
    told, (problem,) = found(here)
    assert says in problem
    assert NAME in problem
    # The other one is.
    assert told == {(NEXT, "shuffle"): said(batch=NEXT)}


def test_a_signature_of_one_kind_is_none_of_another(here: Deployment) -> None:
    """A summary's or statement's signature must not make a receipt of the same bytes."""
    folder = written(here, said())
    signature = active_key(here.base / "keys", "analyzer_signer").sign((folder / NAME).read_bytes(), "statement")
    (folder / f"{NAME}.sig").write_text(signature.model_dump_json())
    told, (problem,) = found(here)
    assert told == {}
    assert "the signature of the receipt" in problem


def test_a_forged_later_one_does_not_hide_what_its_party_said(here: Deployment) -> None:
    folder = written(here, said())
    forged = said(number=9, digest="f")
    (folder / forged.name).write_text(forged.model_dump_json())
    told, (problem,) = found(here)
    assert told == {(BATCH, "shuffle"): said()}
    assert f"{forged.name} is not signed" in problem


def test_a_receipt_says_no_counts_by_reason(here: Deployment) -> None:
    folder = written(here, said())
    raw = json.loads((folder / NAME).read_text())
    assert (raw["streams"], raw["taken"]) == ({}, 7)
    assert not {"rejected", "too_late"} & set((folder / NAME).read_text().split('"'))


def test_files_of_others_in_the_folder_are_passed_over(here: Deployment) -> None:
    folder = written(here, said())
    for name in ("notes.json", f"{BATCH}.shuffle.json", f"x{NAME}", f"{BATCH}.shuffle.000001-3.json"):
        (folder / name).write_text("{")
    assert found(here) == ({(BATCH, "shuffle"): said()}, [])


def test_the_folder_of_one_party_can_lie_elsewhere(here: Deployment) -> None:
    paths = {"receipts/analyzer": "elsewhere", "stated": "all"}
    moved = replace(here, file=here.file.model_copy(update={"paths": paths}))
    assert moved.folder("receipts", "analyzer", "words") == str(here.base / "elsewhere" / "words")
    assert moved.folder("receipts", "aux-server", "words") == f"{here.store}/receipts/aux-server/words"
    assert moved.folder("receipts") == f"{here.store}/receipts"
    assert moved.folder("stated", "shuffler") == str(here.base / "all" / "shuffler")
    assert written(moved, said()) == here.base / "elsewhere" / "words"
    assert found(moved) == ({(BATCH, "shuffle"): said()}, [])
