"""Key files: one private file for each role, and one public file for the campaign.

DIR/analyzer.key, DIR/aux_server.key   JSON, mode 0600, kept by that party alone
DIR/public.json                        ids, public keys and validity by role
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from pydantic import ValidationError

from hushcount.errors import UsageError
from hushcount.files import write_new
from hushcount.parts import Part, explain
from hushcount.public_keys import PublicKeyPart
from keys.private import ROLES, PrivateKey, Role

PUBLIC_FILE = "public.json"
_LONGEST_FILE = 4096


class PublicFile(Part):
    """What public.json holds: public keys by role, of one party or of both."""

    analyzer: tuple[PublicKeyPart, ...] = ()
    aux_server: tuple[PublicKeyPart, ...] = ()


@dataclass(frozen=True)
class KeyReference:
    """Where a role's private key is; what goes into a job graph in the key's place.

    Attributes:
        directory: the key directory, a path on the machine that opens the key.
        role: whose key.
    """

    directory: str
    role: Role

    @property
    def path(self) -> Path:
        return Path(self.directory) / f"{self.role}.key"

    def read(self) -> PrivateKey:
        """Open the key file.

        Raises:
            UsageError: missing, unreadable, open to others, or not a key file; its content is never named.
        """
        try:
            with self.path.open("rb") as stream:
                mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
                raw = stream.read(_LONGEST_FILE)
        except OSError as error:
            raise UsageError(f"cannot read key file {self.path}: {error.strerror}") from None
        if mode & 0o077:
            raise UsageError(f"key file {self.path} has mode {mode:04o}, must be 0600: chmod 600 {self.path}")
        try:
            data = json.loads(raw)
            key = PrivateKey(bytes.fromhex(data["secret"]))
            role, name = data["role"], data["id"]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UsageError(f"key file {self.path} is not a key file of hushcount keys new") from None
        if role != self.role or name != key.id:
            raise UsageError(f"key file {self.path} is not the key of the role {self.role} that it is named after")
        return key


def create(directory: Path, days: int, roles: tuple[Role, ...] = ROLES, now: datetime | None = None) -> PublicFile:
    """Make a key pair for each of the roles in a directory.

    Args:
        directory: made if missing; may not hold a key already.
        days: validity from now on, at least 1.
        roles: whose; a party that runs by itself makes its own alone.
        now: when validity begins; the present by default.

    Raises:
        UsageError: a key file exists (it is never overwritten), or the directory cannot be written.
    """
    if days < 1:
        raise UsageError(f"days is {days}, must be at least 1")
    start = (now or datetime.now(timezone.utc)).replace(microsecond=0)
    existing = [
        path for path in (*(directory / f"{role}.key" for role in roles), directory / PUBLIC_FILE) if path.exists()
    ]
    if existing:
        raise UsageError(f"key file {existing[0]} exists and is never overwritten: give another directory")
    pairs = {role: PrivateKey.generate() for role in roles}
    public = {
        role: (PublicKeyPart(id=key.id, key=key.public_key.hex(), not_before=start, not_after=start + timedelta(days)),)
        for role, key in pairs.items()
    }
    part = PublicFile(analyzer=public.get("analyzer", ()), aux_server=public.get("aux_server", ()))
    made: list[Path] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for role, key in pairs.items():
            record = {"role": role, "id": key.id, "secret": key.secret_for_storage().hex()}
            write_new(directory / f"{role}.key", json.dumps(record) + "\n", 0o600)
            made.append(directory / f"{role}.key")
        write_new(directory / PUBLIC_FILE, part.model_dump_json(indent=2) + "\n", 0o644)
    except OSError as error:
        for path in made:
            path.unlink()
        raise UsageError(f"cannot write keys to {directory}: {error.strerror}") from None
    return part


def read_public(directories: Sequence[Path]) -> PublicFile:
    """Read the public key files of one or more key directories, one party's after another's.

    Raises:
        UsageError: one is missing or invalid, or none holds the analyzer's key.
    """
    found = [_read_public(directory / PUBLIC_FILE) for directory in directories]
    return PublicFile(
        analyzer=tuple(key for part in found for key in part.analyzer),
        aux_server=tuple(key for part in found for key in part.aux_server),
    )


def _read_public(path: Path) -> PublicFile:
    try:
        return PublicFile.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except ValidationError as error:
        raise UsageError(f"{path} is invalid: {explain(error)}") from None


def require_campaign_key(reference: KeyReference, listed: tuple[PublicKeyPart, ...]) -> None:
    """Check, before any data is read, that the key can open what the campaign's clients seal.

    Raises:
        UsageError: the key file cannot be used, or is none of the campaign's keys.
    """
    key = reference.read()
    if key.id not in [part.id for part in listed]:
        ids = ", ".join(part.id for part in listed)
        raise UsageError(f"key file {reference.path} has id {key.id}, the campaign's {reference.role} keys are {ids}")
