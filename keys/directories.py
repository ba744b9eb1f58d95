"""Key directories, and references to the private keys in them.

DIR/analyzer-ID.key, DIR/aux_server-ID.key, ...   JSON, mode 0600; only that party has it
DIR/public.json                                   roles, ids, public keys and dates of all keys, also retired ones
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from hushcount.campaigns.public_keys import EvaluatorKeyPart, PublicKeyPart, VerifyKeyPart
from hushcount.campaigns.signatures import Purpose, Signature
from hushcount.clock import MACHINE
from hushcount.errors import RetiredKey, UsageError
from hushcount.formats.models import Part
from keys import records
from keys.evaluating import EvaluatorKey
from keys.listing import (
    PUBLIC_FILE,
    KeyListing,
    changing,
    listing_directory,
    new_keys,
    private_kind,
    read_listing,
)
from keys.private import Guarded, PrivateKey, SigningKey
from keys.roles import EVALUATING_ROLES, OPENING_ROLES, ROLES, SIGNING_ROLES, Role, SigningRole

AnyKey = TypeVar("AnyKey", bound=Guarded)


class PublicFile(Part):
    """The public keys for a new campaign file, by role; the tuple of a role without a key is empty."""

    analyzer: tuple[PublicKeyPart, ...] = ()
    aux_server: tuple[PublicKeyPart, ...] = ()
    evaluator: tuple[EvaluatorKeyPart, ...] = ()


@dataclass(frozen=True)
class KeyReference:
    """The source, role and id by which a private key is found.

    A job graph holds this reference instead of the key, because the reference holds no secret. Every method that opens
    the key raises UsageError if the key is missing, unreadable, readable by other users, or has another role or id, and
    HushcountError if the key service does not unwrap the key. No error shows a part of the key.

    Attributes:
        source: the key directory on the machine that opens the key; or env:NAME, an environment variable of that
            machine; or gcp-secret://NAME.
        role: the role that the key belongs to.
        id: the id of the public key.
    """

    source: str
    role: Role
    id: str

    @property
    def place(self) -> str:
        """The place where the key is stored, as messages name it."""
        return records.name_of(self.source) if records.is_text(self.source) else f"key file {self.path}"

    @property
    def path(self) -> Path:
        """The path of the key file; meaningless if the source is env:NAME or gcp-secret://NAME."""
        return records.key_path(Path(self.source), self.role, self.id)

    def read(self) -> PrivateKey:
        """Open a key that opens reports."""
        self._require(OPENING_ROLES, "opens reports")
        return self._matching(PrivateKey)

    def read_evaluator(self) -> EvaluatorKey:
        """Open an evaluator's key."""
        self._require(EVALUATING_ROLES, "evaluates")
        return self._matching(EvaluatorKey)

    def read_signing(self) -> SigningKey:
        """Open a key that signs."""
        self._require(SIGNING_ROLES, "signs")
        return self._matching(SigningKey)

    def read_any(self) -> Guarded:
        """Open a key of any role."""
        return self._matching(private_kind(self.role))

    def sign(self, payload: bytes, purpose: Purpose) -> Signature:
        """Open the key, sign with it, and drop it from memory.

        `hushcount.campaigns.signatures` verifies the signatures.
        """
        return self.read_signing().sign(payload, purpose)

    def _require(self, roles: Sequence[Role], does: str) -> None:
        if self.role not in roles:
            raise UsageError(f"{self.place} has the role {self.role}, must have a role that {does}: {', '.join(roles)}")

    def _matching(self, kind: type[AnyKey]) -> AnyKey:
        text = records.is_text(self.source)
        secrets: Sequence[tuple[str | None, bytes]] = (
            records.read_text(self.source, self.role)
            if text
            else [(self.id, records.read_file(self.path, self.role, self.id))]
        )
        for id, secret in secrets:
            if id in (None, self.id) and (key := kind(secret)).id == self.id:
                return key
        if text:
            raise UsageError(f"{self.place} holds no key {self.id} of the {self.role}")
        raise records.another_key(self.path, self.role, self.id)


def campaign_key(
    source: Path | str, role: Role, listed: Sequence[PublicKeyPart] | Sequence[EvaluatorKeyPart]
) -> KeyReference:
    """Find the private key for a public key of a campaign, and open it once, before any data is read.

    The source is a key directory, env:NAME, or gcp-secret://NAME; `listed` is the campaign's one key of this role.

    Raises:
        UsageError: there is no such key, or the key cannot be used.
        RetiredKey: the key was destroyed.
        HushcountError: the key service does not unwrap the key.
    """
    (wanted,) = listed
    reference = _reference(source, role, wanted.id)
    if not records.is_text(reference.source):
        _require_kept(reference)
    reference.read_any()
    return reference


def active_key(source: Path | str, role: SigningRole, at: datetime | None = None) -> KeyReference:
    """Find the private key with which a role signs at the time `at`, by default now.

    The source is a key directory; or env:NAME or gcp-secret://NAME with exactly one key of the role.

    Raises:
        UsageError: there is no such key, or the key cannot be used.
    """
    if records.is_text(str(source)):
        found = records.read_text(str(source), role)
        if len(found) != 1:
            raise UsageError(f"{records.name_of(str(source))} holds {len(found)} keys of the {role}, must hold one")
        return _reference(source, role, SigningKey(found[0][1]).id)
    # The option `--role handing-on` makes the signing keys of shuffler, auxiliary server and analyzer together, for an
    # operator who runs all three.
    new = f"hushcount keys new --role {role if role in ('operator', 'publisher') else 'handing-on'} --out"
    if not (Path(source) / PUBLIC_FILE).exists():
        raise UsageError(f"{source} is not a key directory: {new} {source} makes one")
    listing = read_listing(Path(source))
    active = listing.active(role, at or MACHINE.now())
    if active is None:
        rotate = f"hushcount keys rotate --keys {source} --overlap 7d"
        cure = rotate if listing.of(role) else f"{new} ANOTHER_DIRECTORY, and name that directory"
        raise UsageError(f"key directory {source} has no active key of the {role}: {cure}")
    return _reference(source, role, active.id)


def private_keys(directory: Path) -> tuple[Guarded, ...]:
    """Open every private key of a key directory, to search outputs for leaked keys."""
    keys: list[Guarded] = []
    for role in ROLES:
        for path in sorted(directory.glob(f"{role}-*.key")):
            reference = KeyReference(str(directory), role, path.stem.removeprefix(f"{role}-"))
            keys.append(reference.read_any())
    return tuple(keys)


def verify_keys(source: Path | str, role: SigningRole, *, retired: bool = False) -> tuple[VerifyKeyPart, ...]:
    """Return the public keys that verify a role's signatures, from the signer's public.json or a directory with it.

    With `retired`, retired keys are returned too, because they verify old signatures.

    Raises:
        UsageError: the listing cannot be read, or lists no such key.
    """
    directory = listing_directory(source)
    listed = [key.part for key in read_listing(directory).of(role) if retired or key.retired_at is None]
    keys = tuple(key for key in listed if isinstance(key, VerifyKeyPart))
    if not keys:
        raise UsageError(f"{directory / PUBLIC_FILE} lists no key of the {role} that is not retired")
    return keys


def read_public(directories: Sequence[Path], at: datetime | None = None) -> PublicFile:
    """Return each role's active public key in the key directories, for a campaign that begins at the time `at`.

    The evaluator's key for an epoch also depends on the keys of earlier epochs (`keys.listing.next_key`).

    Raises:
        UsageError: a listing is missing or invalid, or lists keys of a role that opens, but no active key of that role.
    """
    now = at or MACHINE.now()
    active: dict[str, list[dict[str, object]]] = {}
    for directory in directories:
        listing = read_listing(directory)
        for role in (*OPENING_ROLES, *EVALUATING_ROLES):
            key = listing.active(role, now)
            if key is not None:
                active.setdefault(role, []).append(dict(key.part))
            elif listing.of(role) and role in OPENING_ROLES:
                spans = ", ".join(f"{one.id} from {one.not_before.isoformat()}" for one in listing.of(role))
                raise UsageError(f"{directory} has no {role} key that is active at {now.isoformat()}: it has {spans}")
    return PublicFile.model_validate(active)


def create(
    directory: Path,
    days: int,
    roles: Sequence[Role] = OPENING_ROLES,
    now: datetime | None = None,
    wrap: str | None = None,
    number: int = 1,
) -> PublicFile:
    """Make a key pair for each role in a new key directory, and return the public keys for a campaign file.

    The keys are valid for `days` days from now on. `wrap` names the key with which a key service wraps the secrets,
    gcp-kms://... or aws-kms://...; without `wrap` the key files hold the secrets unencrypted. The role evaluator gets
    `number` keys, every other role gets one.

    Raises:
        UsageError: a key file exists (it is never overwritten), or the directory cannot be written.
        HushcountError: the key service did not wrap the secrets.
    """
    start = (now or MACHINE.now()).replace(microsecond=0)
    existing = sorted([*directory.glob("*.key"), *directory.glob(PUBLIC_FILE)])
    if existing:
        raise UsageError(f"key file {existing[0]} exists and is never overwritten: give another directory")
    made = [one for role in roles for one in new_keys(role, number, start, days, 0, wrap)]
    with changing(directory) as write:
        for listed, record in made:
            write(records.key_path(directory, listed.role, listed.id), record, 0o600)
        write(directory / PUBLIC_FILE, KeyListing(keys=tuple(listed for listed, _ in made)).text(), 0o644)
    return read_public([directory], start)


def _reference(source: Path | str, role: Role, id: str) -> KeyReference:
    """Return a reference with an absolute directory, because workers run in other directories."""
    text = str(source)
    return KeyReference(text if records.is_text(text) else str(Path(text).absolute()), role, id)


def _require_kept(reference: KeyReference) -> None:
    """Raise if the key directory lists the key as retired, or has no file for it; a missing public.json is no error."""
    directory = Path(reference.source)
    listing = read_listing(directory) if (directory / PUBLIC_FILE).exists() else KeyListing()
    listed = listing.find(reference.id)
    if listed is not None and listed.retired_at is not None:
        raise RetiredKey(
            f"the campaign's {reference.role} key {reference.id} was retired on {listed.retired_at.isoformat()}: "
            "what is sealed to it cannot be opened any more",
            reference.id,
        )
    if directory.is_dir() and not reference.path.exists():
        others = ", ".join(path.stem.rpartition("-")[2] for path in sorted(directory.glob(f"{reference.role}-*.key")))
        raise UsageError(
            f"key directory {directory} has no key file {reference.path.name}, the key of the campaign's "
            f"{reference.role}; it holds these keys of the role: {others or 'none'}"
        )
