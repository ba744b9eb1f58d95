"""Private keys: opened where they are used, and never copied, shown or overwritten."""

from __future__ import annotations

import copy
import json
import logging
import os
import pickle
import stat
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest

from hushcount.errors import HushcountError, UsageError
from hushcount.threads import in_chunks
from hushcount.wire.sealing import SEAL_BYTES, Sealer
from keys import directories, records
from keys.listing import read_listing
from keys.private import PrivateKey, SigningKey
from keys.roles import ROLES
from tests.support.records import key_file, key_reference

SECRET = bytes(range(100, 132))


@pytest.fixture(params=[PrivateKey, SigningKey])
def key(request: pytest.FixtureRequest) -> PrivateKey | SigningKey:
    """One that opens and one that signs: both refuse the same."""
    return request.param(SECRET)


@pytest.fixture
def opener() -> PrivateKey:
    return PrivateKey(SECRET)


def shows(text: str) -> bool:
    """Return whether a text shows four bytes of the secret in a row, in any usual form."""
    pieces = [SECRET[start : start + 4] for start in range(29)]
    forms = (bytes.hex, lambda piece: repr(piece)[2:-1], lambda piece: ", ".join(map(str, piece)))
    return any(form(piece) in text for piece in pieces for form in forms)


def test_no_text_of_a_key_shows_it(key: PrivateKey | SigningKey, caplog: pytest.LogCaptureFixture) -> None:
    texts = [
        str(key),
        repr(key),
        f"{key}",
        f"{key!r}",
        f"{key:>80}",
        "%s %r" % (key, key),  # noqa: UP031  # the point
        f"{key:x}",
        f"{[key]}",
    ]
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("test").error("key %s", key)
    texts.append(caplog.text)
    assert not any(shows(text) for text in texts)
    assert all(key.id in text for text in texts)
    assert shows(SECRET.hex())
    assert shows(str(SECRET))
    assert shows(str(list(SECRET)))


def test_a_key_refuses_pickle(key: PrivateKey | SigningKey) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="pickled") as caught:
            pickle.dumps([key], protocol)
        assert not shows(str(caught.value))


def test_a_key_refuses_to_be_copied_or_taken_apart(key: PrivateKey | SigningKey) -> None:
    for duplicate in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="copied"):
            duplicate(key)
    with pytest.raises(TypeError):
        vars(key)
    with pytest.raises(TypeError):
        asdict(key)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        json.dumps(key)
    with pytest.raises(AttributeError):
        key.secret = b""  # type: ignore[attr-defined]
    public = [name for name in dir(key) if not name.startswith("_")]
    uses = ["sign"] if isinstance(key, SigningKey) else ["open", "open_rows"]
    assert public == sorted(["derived", "generate", "id", "public_key", "secret_for_storage", *uses])


def test_keys_are_not_compared_by_what_they_hold(key: PrivateKey | SigningKey) -> None:
    assert key != type(key)(SECRET)
    assert key == key  # noqa: PLR0124


def test_a_secret_of_wrong_length_is_refused_without_naming_it() -> None:
    for length in (0, 31, 33):
        for kind in (PrivateKey, SigningKey):
            with pytest.raises(ValueError, match=f"{length} bytes.* 32") as caught:
                kind(SECRET[:length] if length < 33 else SECRET + b"\x01")
            assert not shows(str(caught.value))


def test_opening_fails_in_one_way_only(opener: PrivateKey) -> None:
    """Truncated, altered anywhere, sealed to another, no box at all: None, and nothing raised."""
    sealed = Sealer(opener.public_key).seal(b"plain")
    assert opener.open(sealed) == b"plain"
    bad = [sealed[:cut] for cut in range(len(sealed))] + [
        sealed + b"\0",
        Sealer(PrivateKey.generate().public_key).seal(b"x"),
    ]
    bad += [sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :] for at in range(len(sealed))]
    # The top bit of the ephemeral X25519 key is not used by the curve, but the box's nonce depends on it.
    bad.append(sealed[:31] + bytes([sealed[31] ^ 0x80]) + sealed[32:])
    assert [opener.open(box) for box in bad] == [None] * len(bad)


def test_many_are_opened_in_order_on_any_number_of_threads(opener: PrivateKey) -> None:
    for threads in (1, 2, 5):
        other = PrivateKey.generate()
        plain = np.random.default_rng(1).integers(0, 256, (23, 9), dtype=np.uint8)
        sealed = Sealer(opener.public_key).seal_many(plain, threads)
        assert sealed.shape == (23, 9 + SEAL_BYTES)
        sealed[4] = np.frombuffer(Sealer(other.public_key).seal(plain[4].tobytes()), np.uint8)
        sealed[7, 40] ^= 1
        parts = in_chunks(opener.open_rows, sealed, threads)
        found, opened = (np.concatenate([getattr(part, name) for part in parts]) for name in ("plain", "opened"))
        assert list(np.flatnonzero(~opened)) == [4, 7]
        assert np.array_equal(found[opened], plain[opened])
        assert not found[~opened].any()


def test_key_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        part = directories.create(tmp_path / "a", days=1, roles=ROLES)
    finally:
        os.umask(old)
    listing = read_listing(tmp_path / "a")
    for role in ROLES:
        assert stat.S_IMODE(key_file(tmp_path / "a", role).stat().st_mode) == 0o600
        reference = key_reference(tmp_path / "a", role)
        opened = reference.read_any()
        (listed,) = listing.of(role)
        assert (opened.id, opened.public_key.hex()) == (listed.id, listed.key)
    public = (tmp_path / "a" / "public.json").read_text()
    secrets = [json.loads(key_file(tmp_path / "a", role).read_text())["secret"] for role in ROLES]
    assert not any(secret[:8] in public for secret in secrets)
    assert len(set(secrets)) == len(ROLES) == 8
    assert directories.read_public([tmp_path / "a"]) == part


def test_keys_are_fresh_and_valid_from_now_for_the_days_asked(tmp_path: Path) -> None:
    now = datetime(2026, 3, 4, 5, 6, 7, 8, tzinfo=timezone.utc)
    first, second = (
        directories.create(tmp_path / "a", days=30, now=now),
        directories.create(tmp_path / "b", days=30, now=now),
    )
    assert first.analyzer[0].not_before == now.replace(microsecond=0)
    assert (first.analyzer[0].not_after - first.analyzer[0].not_before).days == 30
    assert len({part.key for keys in (first, second) for part in (*keys.analyzer, *keys.aux_server)}) == 4


def test_no_key_file_is_ever_overwritten(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for name in (
        "analyzer-0123456789abcdef.key",
        "old.key",
        "public.json",
    ):
        with subtests.test(name=name):
            here = tmp_path / name
            here.mkdir()
            (here / name).write_text("old")
            with pytest.raises(UsageError, match=name):
                directories.create(here, days=1)
            assert [path.name for path in here.iterdir()] == [name]
            assert (here / name).read_text() == "old"


def test_a_reference_holds_no_secret_and_may_be_pickled(tmp_path: Path) -> None:
    directories.create(tmp_path, days=1)
    reference = key_reference(tmp_path, "analyzer")
    secret = bytes.fromhex(json.loads(reference.path.read_text())["secret"])
    pickled = pickle.dumps(reference)
    assert secret[:8] not in pickled
    assert pickle.loads(pickled).read().id == reference.read().id  # noqa: S301  # our own bytes


def test_what_is_raised_for_a_damaged_key_file_leads_to_no_secret(tmp_path: Path) -> None:
    """Not by the errors that it came from either: a tool that collects errors walks them."""
    directories.create(tmp_path / "keys", days=30)
    (path,) = (tmp_path / "keys").glob("analyzer-*.key")
    text = path.read_text()
    (key,) = read_listing(tmp_path / "keys").of("analyzer")
    for damaged, says in ((text + text, "analyzer-"), (text + " " * (1 << 14), "must have at most 16,384 bytes")):
        path.write_text(damaged)
        with pytest.raises(HushcountError, match=says) as caught:
            records.read_file(path, "analyzer", key.id)
        error: BaseException | None = caught.value
        while error is not None:
            assert json.loads(text)["secret"] not in str(vars(error)) + str(error.args)
            error = error.__context__
