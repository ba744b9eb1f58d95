"""A key directory's public.json: how the public keys of all roles and states are listed and changed (docs/adr/0017).

Each epoch of an oblivious campaign uses the next of the evaluator's keys, and no key is used for two epochs. If one key
served two campaign files, evaluations for the clients of one file would test guesses against stored hashes of the other
file, even if both files belong to one campaign.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from hushcount.campaigns.public_keys import EvaluatorKeyPart, KeyId, PublicKeyPart, VerifyKeyPart
from hushcount.errors import UsageError
from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import parse_model, read_file
from hushcount.formats.whole_files import write_new
from keys import records
from keys.evaluating import EvaluatorKey
from keys.private import PrivateKey, SigningKey
from keys.roles import EVALUATING_ROLES, SIGNING_ROLES, Role

PUBLIC_FILE = "public.json"
State = Literal["pending", "active", "expiring", "retired"]


def listing_directory(source: Path | str) -> Path:
    """Return the key directory that a source names: the source is this directory, or its public.json."""
    path = Path(source)
    return path.parent if path.name == PUBLIC_FILE else path


class ListedKey(Part):
    """One public key and its dates."""

    role: Role
    id: KeyId
    key: Hex32
    not_before: datetime
    not_after: datetime
    overlap_seconds: int = Field(
        default=0,
        ge=0,
        le=100 * 366 * 86400,
        description="how long after not_before the previous key still opens reports, in seconds",
    )
    retired_at: datetime | None = Field(default=None, description="when the private key was destroyed")

    @model_validator(mode="after")
    def _check(self) -> ListedKey:
        _ = self.part
        if self.retired_at is not None and self.retired_at.tzinfo is None:
            raise ValueError("retired_at must name a time zone, as in 2026-01-01T00:00:00Z")
        return self

    @property
    def part(self) -> PublicKeyPart | EvaluatorKeyPart | VerifyKeyPart:
        """The key as other files list it: without the fields of overlap and retirement."""
        return _kind(self.role)(id=self.id, key=self.key, not_before=self.not_before, not_after=self.not_after)


def _kind(role: Role) -> type[PublicKeyPart] | type[EvaluatorKeyPart] | type[VerifyKeyPart]:
    if role in SIGNING_ROLES:
        return VerifyKeyPart
    return EvaluatorKeyPart if role in EVALUATING_ROLES else PublicKeyPart


def private_kind(role: Role) -> type[PrivateKey] | type[EvaluatorKey] | type[SigningKey]:
    """Return the class of a role's private keys."""
    if role in SIGNING_ROLES:
        return SigningKey
    return EvaluatorKey if role in EVALUATING_ROLES else PrivateKey


class KeyListing(Part):
    """All keys that a key directory has or had."""

    keys: tuple[ListedKey, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> KeyListing:
        ids = [key.id for key in self.keys]
        if len(set(ids)) < len(ids):
            raise ValueError("keys: an id is listed twice")
        # Two keys of the evaluator may begin together: it makes keys for several epochs before it knows when each epoch
        # begins.
        for role in {key.role for key in self.keys} - set(EVALUATING_ROLES):
            begins = [key.not_before for key in self.kept(role)]
            if len(set(begins)) < len(begins):
                raise ValueError(f"keys: two of the role {role} begin at the same time")
        return self

    def of(self, role: Role) -> tuple[ListedKey, ...]:
        """Return a role's keys, the oldest first."""
        return tuple(sorted((key for key in self.keys if key.role == role), key=lambda key: key.not_before))

    def kept(self, role: Role) -> list[ListedKey]:
        """Return a role's keys that are not retired, the oldest first."""
        return [key for key in self.of(role) if key.retired_at is None]

    def find(self, id: str) -> ListedKey | None:
        """Return the key with this id, or None if there is no such key."""
        return next((key for key in self.keys if key.id == id), None)

    def active(self, role: Role, at: datetime) -> ListedKey | None:
        """Return the newest of a role's keys that are valid at the time `at`, or None if no key is valid then."""
        valid = [key for key in self.kept(role) if key.not_before <= at < key.not_after]
        return valid[-1] if valid else None

    def state(self, key: ListedKey, at: datetime) -> State:
        """Return the state of a key of this listing at the time `at`; a retired key counts as retired at any time."""
        if key.retired_at is not None:
            return "retired"
        if at < key.not_before:
            return "pending"
        if key.role in EVALUATING_ROLES:
            # Each key of the evaluator belongs to one epoch, so a later key does not replace an earlier key.
            return "active" if at < key.not_after else "expiring"
        return "active" if self.active(key.role, at) == key else "expiring"

    def opened_until(self, key: ListedKey) -> datetime | None:
        """Return when the overlap with the next key ends; None if there is no next key, and for an evaluator's key."""
        if key.role in EVALUATING_ROLES:
            return None
        later = next((other for other in self.kept(key.role) if other.not_before > key.not_before), None)
        return None if later is None else later.not_before + timedelta(seconds=later.overlap_seconds)

    def text(self) -> str:
        """Return the listing as the content of public.json."""
        return self.model_dump_json(indent=2, exclude_none=True) + "\n"


def read_listing(directory: Path) -> KeyListing:
    """Read a directory's public.json.

    Raises:
        UsageError: the file is missing or invalid.
    """
    path = directory / PUBLIC_FILE
    if not os.path.isfile(path):
        raise UsageError(
            f"key directory is {directory}, must be one that hushcount keys new made: it has no {PUBLIC_FILE}"
        )
    return parse_model(KeyListing, read_file(path, "key listing"), str(path))


def new_key(role: Role, begins: datetime, days: int, overlap_seconds: int, wrap: str | None) -> tuple[ListedKey, str]:
    """Make a key pair: its entry in public.json, and the content of its private key file."""
    if days < 1:
        raise UsageError(f"days is {days}, must be at least 1")
    try:
        ends = begins + timedelta(days)
    except OverflowError:
        raise UsageError(f"days is {days}, must end before the year 10000") from None
    key = private_kind(role).generate()
    listed = ListedKey(
        role=role,
        id=key.id,
        key=key.public_key.hex(),
        not_before=begins,
        not_after=ends,
        overlap_seconds=overlap_seconds,
    )
    return listed, records.record(role, key.id, key.secret_for_storage(), wrap)


def new_keys(
    role: Role, number: int, begins: datetime, days: int, overlap_seconds: int, wrap: str | None
) -> list[tuple[ListedKey, str]]:
    """Make `number` key pairs as `new_key` does; only the evaluator may get more than one key pair."""
    if number != 1 and role not in EVALUATING_ROLES:
        raise UsageError(f"number is {number}, must be 1 for the role {role}: only an evaluator has several keys")
    return [new_key(role, begins, days, overlap_seconds, wrap) for _ in range(number)]


def _listed(directory: Path) -> bytes | None:
    """Return the bytes of the public listing; None if the file is missing."""
    path = directory / PUBLIC_FILE
    return path.read_bytes() if path.exists() else None


@contextmanager
def changing(directory: Path) -> Iterator[Callable[[Path, str, int], None]]:
    """Lock a key directory for a block, and yield a function that writes new files there.

    If the block fails, the new files are removed, unless public.json has changed, because clients may already seal to
    the keys listed there.

    Raises:
        UsageError: the directory cannot be written.
    """
    made: list[Path] = []

    def write(path: Path, content: str, mode: int) -> None:
        write_new(path, content, mode)
        made.append(path)

    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            before = _listed(directory)
            try:
                yield write
            except BaseException:
                if _listed(directory) == before:
                    for path in made:
                        path.unlink(missing_ok=True)
                raise
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UsageError(f"cannot write keys to {directory}: {error.strerror}") from None


def listed_keys(sources: Sequence[Path]) -> tuple[EvaluatorKeyPart, ...]:
    """Return the evaluator's keys that are not retired, oldest first; each source is a public.json or its directory.

    Raises:
        UsageError: a listing is missing or invalid.
    """
    found = [key for source in sources for key in read_listing(listing_directory(source)).kept("evaluator")]
    # `sources` may name a directory twice, so a key is listed once by its id.
    parts = {key.id: key.part for key in sorted(found, key=lambda key: key.not_before)}
    return tuple(part for part in parts.values() if isinstance(part, EvaluatorKeyPart))


def next_key(sources: Sequence[Path], at: datetime, used: Collection[str] = ()) -> EvaluatorKeyPart:
    """Return the evaluator's key for a campaign file that begins at the time `at`.

    Args:
        used: ids of evaluator keys in all other campaign files, also of other campaigns; the returned key is newer than
            these keys.

    Raises:
        UsageError: a listing is missing or invalid, or no unused key is valid at the time `at`.
    """
    keys = listed_keys(sources)
    last = max((place for place, key in enumerate(keys) if key.id in used), default=-1)
    left = keys[last + 1 :]
    for key in left:
        if key.not_before <= at < key.not_after:
            return key
    where = ", ".join(map(str, sources)) or "no file"
    spans = ", ".join(f"{key.id} from {key.not_before.isoformat()} to {key.not_after.isoformat()}" for key in left)
    raise UsageError(
        f"no key of the evaluator is left that is valid at {at.isoformat()} and serves no other campaign file: "
        f"{where} holds {spans or 'none'}; run hushcount keys new --role evaluator or hushcount keys rotate on the "
        "evaluator's machine to make the next key"
    )
