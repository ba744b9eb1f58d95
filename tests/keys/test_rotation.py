"""keys rotate and keys retire: which keys there are afterwards, what is destroyed, and what is refused."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hushcount.errors import UsageError
from keys import records, rotation
from keys.directories import active_key, create
from keys.listing import read_listing
from keys.roles import EVALUATING_ROLES, ROLES, Role
from keys.rotation import destroy, retire, rotate
from tests.support.jobs import done, files_under, refused

START = datetime(2026, 3, 1, tzinfo=timezone.utc)
WEEK = timedelta(days=7)


def day(number: float) -> datetime:
    return START + timedelta(days=number)


def states(directory: Path, at: float, role: Role = "analyzer") -> list[str]:
    listing = read_listing(directory)
    return [listing.state(key, day(at)) for key in listing.of(role)]


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A directory with a key of every role, of 30 days."""
    create(tmp_path / "keys", days=30, roles=ROLES, now=START)
    return tmp_path / "keys"


def test_the_next_key_is_pending_until_it_begins_and_the_old_one_is_kept(keys: Path) -> None:
    before = files_under(keys)
    rotate(keys, overlap=WEEK, begins=day(20), days=40, now=day(10))
    after = files_under(keys)
    assert all(after[name] == content for name, content in before.items() if name != "public.json")
    assert len(after) == len(before) + len(ROLES)
    for role in ROLES:
        assert states(keys, 10, role) == ["active", "pending"]
        # An evaluator's key is of one epoch, and no later one takes its place.
        evaluates = role in EVALUATING_ROLES
        assert states(keys, 20, role) == ["active" if evaluates else "expiring", "active"]
        old, new = read_listing(keys).of(role)
        assert (new.not_before, new.not_after) == (day(20), day(60))
        assert read_listing(keys).opened_until(old) == (None if evaluates else day(27))
        assert stat.S_IMODE(records.key_path(keys, role, new.id).stat().st_mode) == 0o600
    assert active_key(keys, "operator", day(19)).id != active_key(keys, "operator", day(20)).id


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), OSError(5, "Input/output error")])
def test_whatever_is_interrupted_a_listed_key_has_its_private_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    """A client may seal to a listed key from then on. The fault comes after each step on the disk in turn."""
    left = 0

    def failing(name: str) -> None:
        real = getattr(os, name)

        def step(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            result = real(*arguments, **options)
            left -= 1
            if left == 0:
                raise fault
            return result

        monkeypatch.setattr(os, name, step)

    for name in ("open", "fchmod", "fsync", "link", "replace", "unlink", "close"):
        failing(name)
    listed = set()
    for number in range(1, 60):
        directory = tmp_path / str(number)
        left = 0
        create(directory / "old", days=30, roles=("analyzer",), now=START)
        for path, change in (
            (directory / "new", lambda path: create(path, days=30, roles=("analyzer", "aux_server"), now=START)),
            (directory / "old", lambda path: rotate(path, ("analyzer",), overlap=WEEK, now=day(10))),
        ):
            left = number
            with suppress(KeyboardInterrupt, UsageError):
                change(path)
            left = 0
            there = read_listing(path).keys if (path / "public.json").exists() else ()
            listed.add((path.name, len(there)))
            assert all(records.key_path(path, key.role, key.id).exists() for key in there)
    # Some faults came before the listing changed, and some after.
    assert listed == {("new", 0), ("new", 2), ("old", 1), ("old", 2)}


def test_keys_can_be_rotated_again_and_again(keys: Path) -> None:
    for number in range(1, 5):
        rotate(keys, ("analyzer",), overlap=WEEK, now=day(10 * number))
    assert states(keys, 40) == ["expiring"] * 4 + ["active"]
    assert len({key.key for key in read_listing(keys).of("analyzer")}) == 5


def test_a_directory_whose_keys_have_all_ended_can_be_rotated(keys: Path) -> None:
    rotate(keys, ("analyzer",), overlap=WEEK, now=day(100))
    assert states(keys, 100) == ["expiring", "active"]


def test_dates_that_cannot_be_meant_are_refused_and_nothing_changes(subtests: pytest.Subtests, keys: Path) -> None:
    for arguments, now, says in (
        ({"begins": day(9)}, 10, "before now"),
        ({"begins": day(31)}, 10, "no valid key"),
        ({"overlap": timedelta(0)}, 10, "overlap is 0:00:00.* 1s"),
        ({"days": 0}, 10, "days is 0"),
        ({"days": 10**7}, 10, "year 10000"),
        ({}, 0, "second"),
        ({"wrap": "vault://x"}, 10, "'vault://x'"),
    ):
        with subtests.test(arguments=arguments, now=now):
            before = files_under(keys)
            with pytest.raises(UsageError, match=says):
                rotate(keys, **{"overlap": WEEK, **arguments}, now=day(now))  # type: ignore[arg-type]
            assert files_under(keys) == before


def test_a_second_pending_key_and_a_role_without_keys_are_refused(tmp_path: Path) -> None:
    create(tmp_path, days=30, roles=("analyzer",), now=START)
    rotate(tmp_path, overlap=WEEK, begins=day(20), now=day(1))
    before = files_under(tmp_path)
    with pytest.raises(UsageError, match="pending until 2026-03-21"):
        rotate(tmp_path, overlap=WEEK, begins=day(25), now=day(2))
    with pytest.raises(UsageError, match="role shuffler"):
        rotate(tmp_path, ("shuffler",), overlap=WEEK, now=day(21))
    with pytest.raises(UsageError, match="hushcount keys new"):
        rotate(tmp_path / "none", overlap=WEEK)
    assert files_under(tmp_path) == before


def test_if_the_listing_cannot_be_written_the_new_keys_are_removed(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files_under(keys)

    def full(path: Path, data: str, mode: int) -> None:
        assert len(list(path.parent.glob("*.key"))) == 2 * len(ROLES)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(rotation, "write_over", full)
    with pytest.raises(UsageError, match="No space left on device"):
        rotate(keys, overlap=WEEK, now=day(10))
    assert files_under(keys) == before


def _rotate_analyzer(directory: str, role: Role) -> None:
    rotate(Path(directory), (role,), overlap=WEEK, now=day(10))


def test_two_rotations_at_a_time_lose_no_key(keys: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_rotate_analyzer, args=(str(keys), role)) for role in ROLES]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * len(ROLES)
    listed = {records.key_path(keys, key.role, key.id) for key in read_listing(keys).keys}
    assert len(listed) == 2 * len(ROLES)
    assert listed == set(keys.glob("*.key"))


# Retire.


def test_a_retired_key_is_destroyed_and_stays_listed(keys: Path) -> None:
    rotate(keys, ("analyzer",), overlap=WEEK, now=day(10))
    old, new = read_listing(keys).of("analyzer")
    path = records.key_path(keys, "analyzer", old.id)
    secret = json.loads(path.read_text())["secret"]
    gone = retire(keys, old.id, now=day(17))
    assert gone == old.model_copy(update={"retired_at": day(17)})
    assert not path.exists()
    assert not any(secret[:16].encode() in content for content in files_under(keys).values())
    assert states(keys, 17) == ["retired", "active"]
    assert records.key_path(keys, "analyzer", new.id).exists()
    assert read_listing(keys).find(old.id) == gone


def test_a_destroyed_file_is_overwritten_in_place_before_it_is_removed(tmp_path: Path) -> None:
    """A second name of the same file shows what is left on the disk."""
    path, witness = tmp_path / "a.key", tmp_path / "witness"
    path.write_text('{"secret": "' + "ab" * 32 + '"}\n')
    os.link(path, witness)
    size = path.stat().st_size
    destroy(path)
    assert not path.exists()
    assert witness.read_bytes() == bytes(size)
    destroy(path)


@pytest.mark.parametrize("now", [10, 16.9])
def test_while_the_overlap_lasts_only_early_retires(keys: Path, now: float) -> None:
    rotate(keys, ("analyzer",), overlap=WEEK, now=day(10))
    old = read_listing(keys).of("analyzer")[0]
    before = files_under(keys)
    with pytest.raises(UsageError, match="until 2026-03-18"):
        retire(keys, old.id, now=day(now))
    assert files_under(keys) == before
    retire(keys, old.id, early=True, now=day(now))
    assert states(keys, now) == ["retired", "active"]


def test_the_active_key_is_never_retired(keys: Path) -> None:
    (key,) = read_listing(keys).of("analyzer")
    before = files_under(keys)
    for early in (False, True):
        with pytest.raises(UsageError, match=r"active.*hushcount keys rotate"):
            retire(keys, key.id, early=early, now=day(10))
    assert files_under(keys) == before
    retire(keys, key.id, now=day(30))


def test_a_pending_key_may_be_taken_back(keys: Path) -> None:
    rotate(keys, ("analyzer",), overlap=WEEK, begins=day(20), now=day(10))
    retire(keys, read_listing(keys).of("analyzer")[1].id, now=day(11))
    assert states(keys, 25) == ["active", "retired"]
    rotate(keys, ("analyzer",), overlap=WEEK, begins=day(21), now=day(12))
    assert states(keys, 25) == ["expiring", "retired", "active"]


def test_a_key_is_retired_once_and_an_unknown_one_never(keys: Path) -> None:
    (key,) = read_listing(keys).of("shuffler")
    retire(keys, key.id, now=day(31))
    with pytest.raises(UsageError, match="2026-04-01"):
        retire(keys, key.id, now=day(32))
    with pytest.raises(UsageError, match="0000000000000000"):
        retire(keys, "0" * 16, now=day(32))


def test_a_retirement_that_was_interrupted_is_finished(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (key,) = read_listing(keys).of("analyzer")
    path = records.key_path(keys, "analyzer", key.id)

    def interrupted(_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rotation, "destroy", interrupted)
        with pytest.raises(KeyboardInterrupt):
            retire(keys, key.id, now=day(31))
    assert path.exists()
    assert states(keys, 31) == ["retired"]
    retire(keys, key.id, now=day(33))
    assert not path.exists()
    assert read_listing(keys).of("analyzer")[0].retired_at == day(31)


# The commands.


def test_the_commands_show_states_and_ask_before_they_destroy(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    done("keys", "new", "--role", "analyzer", "--out", keys, "--days", 30)
    soon = (datetime.now(timezone.utc) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    shown = done("keys", "rotate", "--keys", keys, "--overlap", "7d", "--begins", soon)
    assert "active, valid" in shown.out
    assert "pending, valid" in shown.out
    data = done("keys", "list", "--keys", keys, "--json").json
    assert [(key["role"], key["state"]) for key in data["keys"]] == [("analyzer", "active"), ("analyzer", "pending")]
    pending = data["keys"][1]["id"]
    before = files_under(keys)
    run = refused("keys", "retire", "--keys", keys, "--id", pending, status=1)
    assert files_under(keys) == before
    assert f"Destroy the analyzer key {pending}?" in run.err
    active = data["keys"][0]["id"]
    refused("keys", "retire", "--keys", keys, "--id", active, "--yes", says=[active, "hushcount keys rotate"])
    assert "retired on" in done("keys", "retire", "--keys", keys, "--id", pending, "--yes").out
    (left,) = keys.glob("*.key")
    assert active in left.name
    secret = json.loads(left.read_text())["secret"]
    assert secret not in shown.out + json.dumps(data)


def test_a_rotation_that_is_misspelt_is_one_sentence(subtests: pytest.Subtests, tmp_path: Path) -> None:
    done("keys", "new", "--out", tmp_path / "keys")
    before = files_under(tmp_path)
    for options, says in (
        (("--overlap", "soon"), "overlap: duration is 'soon'"),
        (("--overlap", "7d", "--begins", "tomorrow"), "begins is 'tomorrow'"),
        (("--overlap", "7d", "--begins", "2099-01-01T00:00:00"), "begins is '2099-01-01T00:00:00'"),
        (("--overlap", "7d", "--begins", "2001-01-01T00:00:00Z"), "before now"),
    ):
        with subtests.test(options=options):
            refused("keys", "rotate", "--keys", tmp_path / "keys", *options, says=[says])
            assert files_under(tmp_path) == before
