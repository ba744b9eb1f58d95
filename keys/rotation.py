"""Rotate and retire keys: make the next key before the present key ends, and destroy old keys (docs/adr/0017)."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

from hushcount.clock import MACHINE
from hushcount.errors import UsageError
from hushcount.formats.whole_files import sync, write_over
from keys import records
from keys.listing import PUBLIC_FILE, KeyListing, ListedKey, changing, new_keys, read_listing
from keys.roles import EVALUATING_ROLES, Role


def rotate(  # noqa: PLR0913  # each is an option of `keys rotate`
    directory: Path,
    roles: tuple[Role, ...] | None = None,
    *,
    overlap: timedelta,
    begins: datetime | None = None,
    days: int = 365,
    wrap: str | None = None,
    number: int = 1,
    now: datetime | None = None,
) -> KeyListing:
    """Make the next key of each role, which is active at once, or pending until `begins`.

    Args:
        directory: an existing key directory.
        roles: the roles that get a new key; by default all roles in the directory.
        overlap: how long after `begins` the earlier key still opens reports, at least a second.
        begins: by default now. The earlier keys must be valid until the overlap ends.
        days: how many days each new key is valid from `begins` on.
        wrap: the key with which a key service wraps the new secrets; by default the key that wraps the role's newest
            secret, if any.
        number: how many keys to make; more than 1 only for an evaluator, which needs one key for each epoch.
        now: the time of the rotation, by default the present time.

    Raises:
        UsageError: a role has no key here, or already has a pending key, or the dates leave a time without a valid key.
        HushcountError: the key service did not wrap the secrets.
    """
    present = (now or MACHINE.now()).replace(microsecond=0)
    start = present if begins is None else begins.replace(microsecond=0)
    if start < present:
        raise UsageError(f"begins is {start.isoformat()}, must not be before now, {present.isoformat()}")
    if overlap < timedelta(seconds=1):
        raise UsageError(f"overlap is {overlap}, must be at least 1s")
    with changing(directory) as write:
        listing = read_listing(directory)
        made = []
        for role in roles or tuple(dict.fromkeys(key.role for key in listing.keys)):
            newest = _newest(directory, listing, role, present, start)
            path = records.key_path(directory, role, newest.id)
            service = wrap or (records.wrapped_by(path) if newest.retired_at is None else None)
            made += new_keys(role, number, start, days, int(overlap.total_seconds()), service)
        # The key file is written first, because an unlisted private key is harmless, but clients would seal reports to
        # a listed key that nobody has.
        for listed, content in made:
            write(records.key_path(directory, listed.role, listed.id), content, 0o600)
        changed = KeyListing(keys=(*listing.keys, *(listed for listed, _ in made)))
        write_over(directory / PUBLIC_FILE, changed.text(), 0o644)
    return changed


def _newest(directory: Path, listing: KeyListing, role: Role, present: datetime, start: datetime) -> ListedKey:
    """Return the newest key of a role; raise UsageError if the next key may not begin at `start`."""
    if not listing.of(role):
        raise UsageError(f"{directory} has no key of the role {role}: hushcount keys new makes one elsewhere")
    newest = (listing.kept(role) or listing.of(role))[-1]
    if role in EVALUATING_ROLES:
        # A new key of the evaluator does not replace its earlier keys, so its begin is not checked.
        return newest
    if newest.retired_at is None and newest.not_before > present:
        raise UsageError(
            f"the {role} key {newest.id} is pending until {newest.not_before.isoformat()}: it is already the "
            "next key; to make another one, retire it first"
        )
    if newest.retired_at is None and newest.not_before == start:
        raise UsageError(f"the {role} key {newest.id} began in this second: try again in the next second")
    if start > max(present, newest.not_after):
        raise UsageError(
            f"begins is {start.isoformat()}, but the {role} key {newest.id} ends before, at "
            f"{newest.not_after.isoformat()}: begin earlier, because in between the role would have no valid key"
        )
    return newest


def retire(directory: Path, id: str, *, early: bool = False, now: datetime | None = None) -> ListedKey:
    """Destroy a private key; its public key is still listed, as retired.

    The key file is overwritten and removed. On a disk that writes in place, overwriting makes the secret unreadable; an
    SSD, a copy-on-write file system, a snapshot or a backup may keep the old bytes. To be safe from such copies, wrap
    the keys with a key service, and destroy the service's key.

    Raises:
        UsageError: no key has this id; or the key is already retired, or is the active key; or `early` is False, and
            its overlap with the next key has not ended. An evaluator's active key can be retired with `early`.
    """
    present = (now or MACHINE.now()).replace(microsecond=0)
    with changing(directory):
        listing = read_listing(directory)
        key = require_retirable(directory, listing, id, present, early)
        retired = key.model_copy(update={"retired_at": key.retired_at or present})
        changed = KeyListing(keys=tuple(retired if other.id == id else other for other in listing.keys))
        # The key is listed as retired before it is destroyed, so that after an interruption nobody uses a
        # half-destroyed key; calling `retire` again destroys the rest.
        write_over(directory / PUBLIC_FILE, changed.text(), 0o644)
        destroy(records.key_path(directory, key.role, key.id))
    return retired


def require_retirable(directory: Path, listing: KeyListing, id: str, now: datetime, early: bool) -> ListedKey:
    """Return the key with this id; if this key may not be retired, raise what `retire` raises."""
    key = listing.find(id)
    if key is None:
        raise UsageError(f"{directory} lists no key {id}: it lists {', '.join(one.id for one in listing.keys)}")
    if key.retired_at is not None and not records.key_path(directory, key.role, key.id).exists():
        raise UsageError(f"the {key.role} key {id} was retired on {key.retired_at.isoformat()}")
    state, until = listing.state(key, now), listing.opened_until(key)
    if state == "active" and key.role in EVALUATING_ROLES:
        if early:
            return key
        raise UsageError(
            f"the {key.role} key {id} may answer clients until {key.not_after.isoformat()}, and verifies discovered "
            "values: wait until hushcount doctor says that the key should be destroyed, then give --early"
        )
    if state == "active":
        raise UsageError(
            f"the {key.role} key {id} is active, so it is still in use: make the next key first, with hushcount keys "
            "rotate"
        )
    if state == "expiring" and until is not None and now < until and not early:
        raise UsageError(
            f"the {key.role} key {id} is still in use until {until.isoformat()}, when its overlap with the next key "
            "ends: wait, or give --early to destroy it now, which makes reports sealed to it unreadable"
        )
    return key


def destroy(path: Path) -> None:
    """Overwrite a file in place and remove it; a missing file is no error."""
    try:
        descriptor = os.open(path, os.O_WRONLY)
    except FileNotFoundError:
        return
    try:
        size = os.fstat(descriptor).st_size
        for filler in (b"\xff", b"\x00"):
            os.pwrite(descriptor, filler * size, 0)
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    path.unlink()
    sync(path.parent)
