"""Which log a ledger belongs to: its id stands in the log, and it notes the newest entry that it follows.

So a run that would charge in another ledger is refused, and a log that was restored to an older copy is noticed: the
ledger speaks of an entry that it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hushcount.errors import FormatError
from pipelines.ledger.file import opened, writing


@dataclass(frozen=True, order=True)
class Followed:
    """An entry of a log: its generation, number and digest."""

    generation: int
    number: int
    entry: str


def id_of(path: Path, *, create: bool = False) -> str:
    """Return the id of a ledger, drawn when it was made; raises as `opened`."""
    with opened(path, create=create) as connection:
        row = connection.execute("SELECT id FROM identity").fetchone()
    if row is None:
        raise FormatError(f"ledger {path} has no id: restore it from a copy")
    return str(row["id"])


def followed(path: Path, party: str) -> dict[str, Followed]:
    """Return the newest entry of each of a party's logs that a ledger follows, by campaign; raises as `opened`."""
    if not path.exists():
        return {}
    with opened(path) as connection:
        rows = connection.execute("SELECT campaign, generation, number, entry FROM followed WHERE party = ?", (party,))
        return {row["campaign"]: Followed(row["generation"], row["number"], row["entry"]) for row in rows}


def follow(path: Path, campaign: str, entries: Mapping[str, Followed]) -> None:
    """Note the newest entry of the log of each party; an older one than noted changes nothing; raises as `opened`."""
    with opened(path) as connection, writing(connection):
        connection.executemany(
            "INSERT INTO followed (campaign, party, generation, number, entry) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (campaign, party) DO UPDATE SET generation = excluded.generation, number = excluded.number, "
            "entry = excluded.entry WHERE (excluded.generation, excluded.number) > (generation, number)",
            [(campaign, party, one.generation, one.number, one.entry) for party, one in entries.items()],
        )
