"""What one party lets others know of a hop: a statement to those that read its output, a receipt to who wrote it.

Nobody reads another party's log. A statement is written after the hop's `done` entry and names it; a receipt is written
after the first hop that read an output, and has no reasons and no results. Both are signed where hand-overs are. They
lie in folders of their own, `stated/PARTY` and `receipts/PARTY`, which others may read, or get copies of.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from hushcount.campaigns.campaign import Stream
from hushcount.campaigns.parts import Identifier
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.campaigns.signatures import SIGNATURE_BYTES, SignatureError, parse_signature, verify
from hushcount.errors import FormatError
from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import SETTINGS_BYTES, parse_model
from keys.store import KeyReference
from pipelines.deployment.settings import Deployment, Party
from pipelines.files import storage
from pipelines.handover.batch_file import BatchName
from pipelines.outputs.counts import Count, StreamCounts

Kind = Literal["statement", "receipt"]
FOLDERS: dict[Kind, str] = {"statement": "stated", "receipt": "receipts"}
_SUFFIX, _SIGNATURE = ".json", ".sig"


class NamedEntry(Part):
    """An entry of the log of who writes: its generation, number and digest."""

    generation: int = Field(ge=1)
    number: int = Field(ge=1)
    entry: Hex32


class Statement(Part):
    """What a party says of a hop of a batch.

    Attributes:
        party: who says it.
        hop: that it ran; in a receipt the one that wrote what it read.
        summary: digest of the summary of that hop; null: the batch had nothing for it.
        streams: what the hop counted; in a receipt empty.
        taken: in a receipt, how many records were taken.
        after: the entry of the party's log after which it is said.
    """

    format: Literal[1] = 1
    kind: Kind
    party: Party
    campaign: Identifier
    batch: BatchName
    hop: str
    at: datetime
    summary: Hex32 | None
    streams: Annotated[dict[Stream, StreamCounts], Field(max_length=2)] = Field(default_factory=dict)
    taken: Count | None = None
    after: NamedEntry

    @property
    def name(self) -> str:
        """Of its file: a later statement about the same hop has another name, and replaces none."""
        return f"{self.batch}.{self.hop}.{self.after.generation:06d}-{self.after.number:010d}{_SUFFIX}"


def put(deployment: Deployment, said: Statement, signer: KeyReference | None) -> None:
    """Write a statement for others, its signature first."""
    path = deployment.folder(FOLDERS[said.kind], said.party, said.campaign, said.name)
    data = said.model_dump_json().encode() + b"\n"
    if signer is not None:
        signature = signer.sign(data, said.kind)
        storage.write_whole(path + _SIGNATURE, [signature.model_dump_json().encode() + b"\n"])
    storage.write_whole(path, [data])


def put_already(deployment: Deployment, kind: Kind, party: Party, campaign: str) -> set[str]:
    """Return the names of a party's statements about a campaign."""
    folder = deployment.folder(FOLDERS[kind], party, campaign)
    return {path.rpartition("/")[2] for path, _ in storage.list_files(folder, _SUFFIX)}


def read(
    deployment: Deployment, kind: Kind, party: Party, campaign: str, keys: Sequence[VerifyKeyPart]
) -> tuple[dict[tuple[str, str], Statement], list[str]]:
    """Return a party's statements about a campaign, and a sentence for each that is not believed.

    Args:
        keys: of the party; empty: signatures are not checked.

    Returns:
        By batch and hop: of several the one after the latest entry.
    """
    found: dict[tuple[str, str], Statement] = {}
    problems = []
    folder = deployment.folder(FOLDERS[kind], party, campaign)
    for path, _ in storage.list_files(folder, _SUFFIX):
        try:
            said = _read(path, keys, kind)
            if (said.kind, said.party, said.campaign, said.name) != (kind, party, campaign, path.rpartition("/")[2]):
                raise FormatError(f"{path} is another {kind} than its place says: restore it")
        except (FormatError, SignatureError) as error:
            problems.append(str(error))
            continue
        before = found.get((said.batch, said.hop))
        if before is None or _order(before) < _order(said):
            found[said.batch, said.hop] = said
    return found, problems


def _read(path: str, keys: Sequence[VerifyKeyPart], kind: Kind) -> Statement:
    data = storage.read_bytes(path, SETTINGS_BYTES)
    if keys:
        signature = storage.read_if_there(path + _SIGNATURE, SIGNATURE_BYTES)
        if signature is None:
            raise SignatureError(f"{path} is not signed: whoever wrote it must give sign_with")
        verify(keys, data, kind, parse_signature(signature, path + _SIGNATURE))
    return parse_model(Statement, data, path, f"is no {kind} of a party")


def _order(said: Statement) -> tuple[int, int]:
    return said.after.generation, said.after.number


def last_named(deployment: Deployment, kind: Kind, party: Party, campaign: str) -> NamedEntry | None:
    """Return the latest entry of its own log that a party's statements name; None: there is none."""
    names = sorted((name.rsplit(".", 2)[-2], name) for name in put_already(deployment, kind, party, campaign))
    if not names:
        return None
    return _read(deployment.folder(FOLDERS[kind], party, campaign, names[-1][1]), (), kind).after
