"""What everybody can see of a world: its outputs that are complete, its ledger, and what its state says."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from hushcount.wire.blocks import read_block, read_header
from pipelines.audit.reconcile import Account, account_of
from pipelines.batches.hops import CHAIN
from pipelines.batches.state import SEGMENTS, opened, snapshot
from pipelines.files import storage
from pipelines.ledger.file import opened as opened_ledger
from pipelines.ledger.file import read_charges
from pipelines.ledger.records import Charge
from pipelines.outputs.staging import SUMMARY
from tests.model.world import World, digest_of
from tests.support.site import view_of


@dataclass(frozen=True)
class Output:
    """An output that says that it is complete.

    Attributes:
        folder: shuffled, released, found or results.
        batch: whose.
        files: their content, by path from its folder on.
    """

    folder: str
    batch: str
    files: dict[str, bytes]

    @property
    def place(self) -> str:
        return f"{self.folder}/{self.batch}"

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads(self.files[SUMMARY])

    @property
    def digest(self) -> str:
        parts = [f"{name} {hashlib.blake2b(content).hexdigest()}" for name, content in sorted(self.files.items())]
        return hashlib.blake2b("\n".join(parts).encode()).hexdigest()

    @property
    def key(self) -> str | None:
        """Under which it is charged; None: it is charged nowhere."""
        charged = (self.summary.get("ledger") or {}).get("charged") or {}
        return charged.get("key")

    def records(self, name: str) -> list[bytes]:
        """Return the digests of the records of a folder of block files; what is damaged is missing."""
        found = []
        for path, content in self.files.items():
            if f"{name}/" in path and path.endswith(".blocks") and "dead_letter" not in path:
                stream = io.BytesIO(content)
                header = read_header(stream, path)
                for index in range(header.blocks):
                    block = read_block(stream, header, index) or b""
                    found += [
                        digest_of(block[at : at + header.record_bytes])
                        for at in range(0, len(block), header.record_bytes)
                    ]
        return found

    @property
    def values(self) -> frozenset[str]:
        """The values that it reveals."""
        return frozenset(content.decode() for path, content in self.files.items() if path.endswith("found.csv"))


def outputs(world: World) -> Iterator[Output]:
    """Yield all that is complete."""
    for folder in (hop.folder for hop in CHAIN.values()):
        home = world.deployment.folder(folder, "words")
        for path, _ in storage.list_tree(home, f"*/{SUMMARY}"):
            if not path.split("/")[-2].startswith("."):
                yield output(folder, path.rpartition("/")[0])


def output(folder: str, where: str) -> Output:
    """Return one that lies somewhere."""
    files = {storage.relative(path, where): storage.read_bytes(path, 1 << 30) for path in storage.list_objects(where)}
    if (own := json.loads(files[SUMMARY]).get("folder")) is not None:
        # In a store they lie in the folder of the run that wrote them.
        mine = {path.removeprefix(f"{own}/"): held for path, held in files.items() if path.startswith(f"{own}/")}
        files = {**mine, SUMMARY: files[SUMMARY]}
    return Output(folder, where.rpartition("/")[2], files)


def charges(world: World) -> list[Charge]:
    """Return what was charged."""
    ledger = world.deployment.ledger
    if ledger is None or not ledger.exists():
        return []
    with opened_ledger(ledger) as connection:
        return [charge for charge in read_charges(connection, "words") if charge.state == "committed"]


def account(world: World) -> tuple[Account, list[Any]]:
    """Return what `hushcount status` says, and the state's rows of segments."""
    with opened(world.deployment.state) as state, snapshot(state) as connection:
        rows = list(connection.execute(select(SEGMENTS)))
        return account_of(view_of(world.deployment, connection, world.now())), rows
