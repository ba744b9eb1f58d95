"""Messages of a party about a hop: statements to the readers of the hop's output, receipts to the writer of an input.

No party reads another party's log. A party writes a statement after the `done` entry of a hop in its own log, and the
statement names this entry. A party writes a receipt after its first hop that read another party's output; a receipt has
no reasons of rejection and no results. Statements and receipts are signed if outputs for other parties are signed.
Statements are in the folder `stated/PARTY`, receipts in `receipts/PARTY`. Other parties may read the folders with
statements and receipts, or get copies of the folders.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import AwareDatetime, Field

from hushcount.campaigns.campaign import Stream
from hushcount.campaigns.parts import Identifier
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.campaigns.signatures import SIGNATURE_BYTES, SignatureError, parse_signature, verify
from hushcount.errors import FormatError
from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import SETTINGS_BYTES, parse_model
from pipelines.deployment.settings import PARTIES, Deployment, Party
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.handover.batch_file import BatchName
from pipelines.handover.parties import verified_by
from pipelines.handover.paths import BATCH_NAME
from pipelines.outputs.counts import Count, StreamCounts

if TYPE_CHECKING:
    # A party that neither signs nor checks signatures does not have the package `keys`.
    from keys.directories import KeyReference
    from keys.roles import SigningRole

Kind = Literal["statement", "receipt"]
FOLDERS: dict[Kind, str] = {"statement": "stated", "receipt": "receipts"}
SIGNERS: dict[Party, SigningRole] = {
    "shuffler": "shuffler",
    "aux-server": "aux_signer",
    "analyzer": "analyzer_signer",
}
"""The role of the key that signs a party's statements and receipts."""
SUFFIX, SIGNATURE = ".json", ".sig"
_NAME = re.compile(
    rf"({BATCH_NAME})\.(?P<hop>[a-z]+)\.(?P<generation>[0-9]{{6}})-(?P<number>[0-9]{{10}})-(?P<entry>[0-9a-f]{{16}}){SUFFIX}"
)


class NamedEntry(Part):
    """An entry of the writing party's log: its generation, number and digest."""

    generation: int = Field(ge=1)
    number: int = Field(ge=1)
    entry: Hex32


class Statement(Part):
    """A statement or a receipt about a hop of a batch.

    Attributes:
        party: the party that writes the message.
        hop: in a statement, the hop that the party ran; in a receipt, the hop that wrote the party's input.
        summary: digest of the summary of that hop; null: the batch had no input for the hop.
        streams: counts of the hop; empty in a receipt.
        dummies: as in the hop's summary; None in a receipt, and without noise, and then not in the file.
        taken: in a receipt, how many records the party read as its input.
        after: the entry of the party's log after which the message was written.
    """

    format: Literal[1] = 1
    kind: Kind
    party: Party
    campaign: Identifier
    batch: BatchName
    hop: str
    at: AwareDatetime
    summary: Hex32 | None
    streams: Annotated[dict[Stream, StreamCounts], Field(max_length=2)] = Field(default_factory=dict)
    dummies: Count | None = None
    taken: Count | None = None
    after: NamedEntry

    @property
    def name(self) -> str:
        """Name of the file.

        Each statement about a hop has its own name, so no statement replaces an earlier statement.
        """
        after = self.after
        return f"{self.batch}.{self.hop}.{after.generation:06d}-{after.number:010d}-{after.entry[:16]}{SUFFIX}"


class Named(NamedTuple):
    """The parts of a statement's file name: batch, hop, and the entry after which the statement was written.

    Attributes:
        entry: the first 16 digits of the entry's digest.
    """

    batch: str
    hop: str
    generation: int
    number: int
    entry: str

    @classmethod
    def parse(cls, name: str) -> Named | None:
        """Return the parts of a file name; None: the name is not that of a statement or receipt."""
        match = _NAME.fullmatch(name)
        return match and cls(match[1], match["hop"], int(match["generation"]), int(match["number"]), match["entry"])

    @property
    def order(self) -> tuple[int, int]:
        """Sort key of entries: a later entry has a greater key."""
        return self.generation, self.number


def put(deployment: Deployment, said: Statement, signer: KeyReference | None) -> None:
    """Write a statement or receipt for other parties, but its signature first."""
    path = deployment.folder(FOLDERS[said.kind], said.party, said.campaign, said.name)
    # Without noise, parties of an earlier version must be able to read it.
    data = said.model_dump_json(exclude={"dummies"} if said.dummies is None else None).encode() + b"\n"
    if signer is not None:
        signature = signer.sign(data, said.kind)
        storage.write_whole(path + SIGNATURE, [signature.model_dump_json().encode() + b"\n"])
    storage.write_whole(path, [data])


def names(deployment: Deployment, kind: Kind, party: Party, campaign: str) -> dict[str, Named]:
    """Return the file names of a party's statements or receipts about a campaign, each with the parts of the name."""
    folder = deployment.folder(FOLDERS[kind], party, campaign)
    return _named(path for path, _ in storage.list_files(folder, SUFFIX))


def names_from(deployment: Deployment, kind: Kind, party: Party, campaign: str, window: str) -> dict[str, Named]:
    """Return what `names` returns, but names for batches of windows before `window` may be left out."""
    folder = deployment.folder(FOLDERS[kind], party, campaign)
    return _named(path for path, *_ in storage.list_from(folder, 0, lambda _: window))


def all_names(deployment: Deployment, kind: Kind, party: Party) -> dict[str, dict[str, Named]]:
    """Return what `names` returns, for every campaign by the campaign's id; the folder is listed only once."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, _ in storage.list_tree(deployment.folder(FOLDERS[kind], party), f"*/*{SUFFIX}"):
        found[path.split("/")[-2]].append(path)
    return {campaign: _named(paths) for campaign, paths in found.items()}


def _named(paths: Iterable[str]) -> dict[str, Named]:
    found = (path.rpartition("/")[2] for path in paths)
    return {name: named for name in found if (named := Named.parse(name)) is not None}


def read(
    deployment: Deployment,
    kind: Kind,
    party: Party,
    campaign: str,
    keys: Sequence[VerifyKeyPart],
    wanted: Callable[[str, str], bool] = lambda batch, hop: True,
) -> tuple[dict[tuple[str, str], Statement], list[str]]:
    """Return a party's statements about a campaign, and a sentence for each statement that is not accepted.

    Args:
        keys: public keys of the party; empty: signatures are not checked.
        wanted: returns whether to read the statements about a batch and hop, because there may be very many statements.

    Returns:
        For each batch and hop, the valid statement that was written after the latest entry; and a sentence for each
        statement that is not accepted.
    """
    about: dict[tuple[str, str], list[tuple[tuple[int, int], str]]] = defaultdict(list)
    for name, named in names(deployment, kind, party, campaign).items():
        if wanted(named.batch, named.hop):
            about[named.batch, named.hop].append((named.order, name))
    found: dict[tuple[str, str], Statement] = {}
    problems = []
    for what, ordered in sorted(about.items()):
        for _, name in sorted(ordered, reverse=True):
            path = deployment.folder(FOLDERS[kind], party, campaign, name)
            try:
                said = _read(path, keys, kind)
            except (FormatError, SignatureError, OSError) as error:
                # OSError: another party may have put something other than a file at `path`; the other statements are
                # still read.
                problems.append(told(error))
                continue
            if (said.kind, said.party, said.campaign, said.name) == (kind, party, campaign, name):
                found[what] = said
                break
            problems.append(f"{path} is a {kind} that belongs in another place: restore it")
    return found, problems


def _read(path: str, keys: Sequence[VerifyKeyPart], kind: Kind) -> Statement:
    data = storage.read_bytes(path, SETTINGS_BYTES)
    if keys:
        signature = storage.read_if_there(path + SIGNATURE, SIGNATURE_BYTES)
        if signature is None:
            raise SignatureError(f"{path} is not signed: the party that wrote it must set sign_with")
        try:
            verify(keys, data, kind, parse_signature(signature, path + SIGNATURE))
        except SignatureError as error:
            raise SignatureError(f"{path}: {error}") from None
    return parse_model(Statement, data, path, f"is not a {kind} of a party")


def keys_of(deployment: Deployment, party: Party) -> tuple[VerifyKeyPart, ...]:
    """Return a party's public keys, one of which must have signed its statements; empty: signatures are not checked."""
    known = {
        "shuffler": deployment.shuffler_keys,
        "aux-server": deployment.aux_server_keys,
        "analyzer": deployment.analyzer_keys,
    }
    return verified_by(known[party], SIGNERS[party])


def others(deployment: Deployment) -> tuple[Party, ...]:
    """Return the parties that run in other deployments."""
    return tuple(party for party in PARTIES if party not in deployment.file.parties)
