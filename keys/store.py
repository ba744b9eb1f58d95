"""Key directories, and references to the private keys in them.

DIR/analyzer-ID.key, DIR/aux_server-ID.key, ...   JSON, mode 0600, kept by that party alone
DIR/public.json                                   roles, ids, public keys and dates of all, the retired too
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

from hushcount.campaigns.public_keys import PublicKeyPart, VerifyKeyPart
from hushcount.errors import RetiredKey, UsageError
from hushcount.formats.models import Part
from keys import records
from keys.directory import new_key, writing
from keys.listing import PUBLIC_FILE, KeyListing, read_listing
from keys.private import PrivateKey, SigningKey
from keys.roles import OPENING_ROLES, ROLES, SIGNING_ROLES, Role, SigningRole

AnyKey = TypeVar("AnyKey", PrivateKey, SigningKey)


class PublicFile(Part):
    """The public keys that a campaign takes, by role: of one party or of both."""

    analyzer: tuple[PublicKeyPart, ...] = ()
    aux_server: tuple[PublicKeyPart, ...] = ()


@dataclass(frozen=True)
class KeyReference:
    """Where a private key is; what goes into a job graph in the key's place. It holds no secret.

    Attributes:
        source: the key directory, a path on the machine that opens the key; or env:NAME, a variable there; or
            gcp-secret://NAME.
        role: whose key.
        id: of its public key.
    """

    source: str
    role: Role
    id: str

    @property
    def place(self) -> str:
        """What a sentence calls it."""
        if records.is_text(self.source):
            return records.name_of(self.source)
        return f"key file {self.path}"

    @property
    def path(self) -> Path:
        """The key file; without meaning for a variable."""
        return records.key_path(Path(self.source), self.role, self.id)

    def read(self) -> PrivateKey:
        """Open a key that opens reports.

        Raises:
            UsageError: missing, unreadable, open to others, or not this key; its content is never named.
            HushcountError: the key service that it is wrapped by did not unwrap it.
        """
        if self.role in SIGNING_ROLES:
            raise UsageError(f"{self.place} is of the {self.role}, who signs: it opens nothing")
        return self._matching(PrivateKey)

    def read_signing(self) -> SigningKey:
        """Open a key that signs.

        Raises:
            UsageError: as `read`.
            HushcountError: as `read`.
        """
        if self.role not in SIGNING_ROLES:
            raise UsageError(f"{self.place} is of the {self.role}, who opens reports: it signs nothing")
        return self._matching(SigningKey)

    def _matching(self, kind: type[AnyKey]) -> AnyKey:
        """Return the key of this id among those that are held."""
        for secret in self._secrets():
            key = kind(secret)
            if key.id == self.id:
                return key
        raise self._another()

    def _secrets(self) -> list[bytes]:
        if records.is_text(self.source):
            held = records.read_text(self.source, self.role)
            return [secret for id, secret in held if id in (None, self.id)]
        return [records.read_file(self.path, self.role, self.id)]

    def _another(self) -> UsageError:
        if records.is_text(self.source):
            return UsageError(f"{self.place} holds no key {self.id} of the {self.role}")
        return UsageError(f"{self.place} is not the key of the role {self.role} that it is named after")


def campaign_key(source: Path | str, role: Role, listed: Sequence[PublicKeyPart]) -> KeyReference:
    """Find the private key that opens what a campaign's clients seal, and open it once, before any data is read.

    Args:
        source: a key directory, env:NAME, or gcp-secret://NAME.
        role: whose key.
        listed: the campaign's keys of this role: one.

    Raises:
        UsageError: there is no such key, or it cannot be used.
        RetiredKey: it was destroyed.
        HushcountError: the key service that it is wrapped by did not unwrap it.
    """
    (wanted,) = listed
    reference = _reference(source, role, wanted.id)
    if not records.is_text(reference.source):
        _require_kept(reference)
    reference.read()
    return reference


def active_key(source: Path | str, role: SigningRole, at: datetime | None = None) -> KeyReference:
    """Find the private key that a role signs with now.

    Args:
        source: a key directory; or env:NAME or gcp-secret://NAME, which then holds one key of the role.
        role: who signs.
        at: when; the present by default.

    Raises:
        UsageError: there is none, or it cannot be used.
    """
    if records.is_text(str(source)):
        held = records.read_text(str(source), role)
        if len(held) != 1:
            raise UsageError(f"{records.name_of(str(source))} holds {len(held)} keys of the {role}, must hold one")
        return _reference(source, role, SigningKey(held[0][1]).id)
    # Where one directory is to hold the keys of both parties that hand on, one command makes them.
    new = f"hushcount keys new --role {'operator' if role == 'operator' else 'handing-on'} --out"
    if not (Path(source) / PUBLIC_FILE).exists():
        raise UsageError(f"{source} is no key directory: {new} {source} makes one")
    listing = read_listing(Path(source))
    found = listing.active(role, at or datetime.now(timezone.utc))
    if found is None:
        rotate = f"hushcount keys rotate --keys {source} --overlap 7d"
        cure = rotate if listing.of(role) else f"{new} ANOTHER, and name that"
        raise UsageError(f"key directory {source} has no active key of the {role}: {cure}")
    return _reference(source, role, found.id)


def private_keys(directory: Path) -> tuple[PrivateKey | SigningKey, ...]:
    """Open every private key of a key directory, for whoever looks that none of them is where it must not be.

    Raises:
        UsageError: a key cannot be used.
    """
    found: list[PrivateKey | SigningKey] = []
    for role in ROLES:
        for path in sorted(directory.glob(f"{role}-*.key")):
            reference = KeyReference(str(directory), role, path.stem.removeprefix(f"{role}-"))
            found.append(reference.read_signing() if role in SIGNING_ROLES else reference.read())
    return tuple(found)


def verify_keys(source: Path | str, role: SigningRole, *, retired: bool = False) -> tuple[VerifyKeyPart, ...]:
    """Return the public keys that a role's signatures are checked by: all that are not retired.

    Args:
        source: a directory with the public.json of whoever signs, or that file.
        role: whose.
        retired: whether retired ones count too, for what was signed long ago.

    Raises:
        UsageError: it cannot be read, or lists none.
    """
    directory = Path(source).parent if Path(source).name == PUBLIC_FILE else Path(source)
    listed = [key.part for key in read_listing(directory).of(role) if retired or key.retired_at is None]
    keys = tuple(key for key in listed if isinstance(key, VerifyKeyPart))
    if not keys:
        raise UsageError(f"{directory / PUBLIC_FILE} lists no key of the {role} that is not retired")
    return keys


def read_public(directories: Sequence[Path], at: datetime | None = None) -> PublicFile:
    """Return the keys for a campaign that begins at that time: the active one of each role in the key directories.

    Args:
        directories: one party's after another's.
        at: the present by default.

    Raises:
        UsageError: a listing is missing or invalid, or none of a role's keys is active then.
    """
    now = at or datetime.now(timezone.utc)
    found: dict[str, list[PublicKeyPart]] = {role: [] for role in OPENING_ROLES}
    for directory in directories:
        listing = read_listing(directory)
        for role in OPENING_ROLES:
            key = listing.active(role, now)
            if key is None and listing.of(role):
                spans = ", ".join(f"{one.id} from {one.not_before.isoformat()}" for one in listing.of(role))
                raise UsageError(f"{directory} has no {role} key that is active at {now.isoformat()}: it has {spans}")
            if key is not None and isinstance(key.part, PublicKeyPart):
                found[role].append(key.part)
    return PublicFile(analyzer=tuple(found["analyzer"]), aux_server=tuple(found["aux_server"]))


def create(
    directory: Path,
    days: int,
    roles: Sequence[Role] = OPENING_ROLES,
    now: datetime | None = None,
    wrap: str | None = None,
) -> PublicFile:
    """Make a key pair for each of the roles in a new key directory, and return what a campaign takes of them.

    Args:
        directory: made if missing; may not hold a key already.
        days: validity from now on, at least 1.
        roles: whose; a party that runs by itself makes its own alone.
        now: when validity begins; the present by default.
        wrap: key of a key service that wraps the secrets, gcp-kms://... or aws-kms://...; None: files hold them.

    Raises:
        UsageError: a key file exists (it is never overwritten), or the directory cannot be written.
        HushcountError: the key service did not wrap them.
    """
    start = (now or datetime.now(timezone.utc)).replace(microsecond=0)
    existing = sorted([*directory.glob("*.key"), *directory.glob(PUBLIC_FILE)])
    if existing:
        raise UsageError(f"key file {existing[0]} exists and is never overwritten: give another directory")
    made = [new_key(role, start, days, 0, wrap) for role in roles]
    with writing(directory) as written:
        for listed, record in made:
            written(records.key_path(directory, listed.role, listed.id), record, 0o600)
        listing = KeyListing(keys=tuple(listed for listed, _ in made))
        written(directory / PUBLIC_FILE, listing.text(), 0o644)
    return read_public([directory], start)


def _reference(source: Path | str, role: Role, id: str) -> KeyReference:
    """Return the reference, its directory absolute: workers run elsewhere."""
    text = str(source)
    return KeyReference(text if records.is_text(text) else str(Path(text).absolute()), role, id)


def _require_kept(reference: KeyReference) -> None:
    """Refuse a key that its directory lists as retired, or does not hold; the listing may be missing."""
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
        held = ", ".join(path.stem.rpartition("-")[2] for path in sorted(directory.glob(f"{reference.role}-*.key")))
        raise UsageError(
            f"key directory {directory} has no key file {reference.path.name}, the key of the campaign's "
            f"{reference.role}; of this role it holds {held or 'none'}"
        )
