"""The queue of one campaign: sealed reports that wait to be sent, and plain values if the app keeps plain values.

A report remains in the queue until the collector has the report. A process claims reports for a limited time before it
sends them, so that no report is sent by two processes at once. If a process is killed, its claim ends after a time, and
another process sends the same bytes again; within the operator's grace period, the shuffler counts equal bytes only
once. A process that slept sends nothing that it claimed before it slept.

A claim freezes the window of a report's first attempt, so that the same bytes always travel under the same client
token, and takes a place under the cap before the report leaves. The report keeps its place in every window until it is
settled, because it may arrive in any of them (`arrivals`).

A discovery report that waits for an evaluator's answer is queued as a blank, which the process that asks the evaluator
claims. When the answer comes, the finished report replaces the blank; if the claim ends before, the blank is sent. The
blank and the finished report are never both sent, because they share one row of the database.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from hushcount.campaigns.campaign import Stream
from hushcount.delivery.database import Database
from hushcount.delivery.waiting import EVALUATION, Claimed, Settled, Turn, Waiting
from hushcount.delivery.waits import LONGEST_WAIT
from hushcount.errors import HushcountError
from hushcount.report_making import Measurement

_SCHEMA = (
    # first_window: when the window of the first attempt began; NULL before it. is_tried: whether an attempt may have
    # arrived, or may still arrive. is_bound: whether the report names first_window itself, and counts in no other one.
    "CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY AUTOINCREMENT, campaign TEXT NOT NULL,"
    " fingerprint TEXT NOT NULL, stream TEXT NOT NULL, collector TEXT NOT NULL, cap INTEGER NOT NULL,"
    " period INTEGER NOT NULL,"
    " body BLOB NOT NULL, value BLOB, due REAL NOT NULL, claim TEXT NOT NULL DEFAULT '',"
    " claimed_until REAL NOT NULL DEFAULT 0, refusals INTEGER NOT NULL DEFAULT 0, first_window INTEGER,"
    " is_tried INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE IF NOT EXISTS facts (campaign TEXT NOT NULL, name TEXT NOT NULL, fact TEXT NOT NULL,"
    " PRIMARY KEY (campaign, name))",
    "CREATE TABLE IF NOT EXISTS documents (campaign TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL,"
    " signature BLOB, refresh_at REAL NOT NULL, PRIMARY KEY (campaign, name))",
)
_ADDED = {"rows": {"is_bound": "INTEGER NOT NULL DEFAULT 0"}}

_COORDINATES = b"\xff"


def _ahead(column: str, of_evaluation: int, of_other: int) -> str:
    """Return the SQL of `is_ahead` for a column with a time that can be `of_evaluation` or `of_other` days ahead.

    Twice the lease is added to the number of days: once because a claim lasts so long, and once because another process
    may have read the clock later.
    """
    days = f"CASE WHEN claim LIKE '{EVALUATION}%' THEN {of_evaluation} ELSE {of_other} END"
    return f"({column} > :now AND {column} <= :now + 2 * :lease + {LONGEST_WAIT} * {days})"


# An evaluation waits for a delay of at most a day, and then for its answer, also at most a day. The report of the
# evaluation then waits for another delay of at most a day.
_FREE = f"NOT {_ahead('claimed_until', 2, 0)}"
# A report that was refused because its window had not begun waits for its window, even if the delivery is early.
_DUE = f"(:early AND coalesce(first_window, :window) <= :window OR NOT {_ahead('due', 3, 1)})"
Remake = Callable[[str | None, int], str]
"""A function that makes a new fact from the old fact and from the number of reports that were removed."""


class _Row(NamedTuple):
    """A row that may be claimed. The rows of a claim are alike in the first columns, those of `_ALIKE`."""

    fingerprint: str
    stream: Stream
    collector: str
    cap: int
    period: int
    window: int
    id: int
    body: bytes
    value: bytes | None
    due: float
    is_tried: int
    is_bound: int


_ALIKE = "fingerprint, stream, collector, cap, period, coalesce(first_window, :window)"


class Group(NamedTuple):
    """Rows that wait. `stream` is empty for plain values of all streams; `window` is None before any attempt.

    Bound rows count in `window` and in no other one.
    """

    stream: str
    is_plain: bool
    is_tried: bool
    is_bound: bool
    window: int | None
    number: int


class QueueFull(HushcountError):
    """The queue is full: no report was made, and no budget was spent."""


def database(path: Path | None) -> Database:
    """Return the database of the queues and the documents of a client's campaigns."""
    return Database(path, _SCHEMA, _ADDED)


@dataclass(frozen=True, eq=False)
class Queue:
    """The queue of one campaign; processes, threads and queues of other campaigns may share the same database.

    Args:
        most: how many reports may wait.
        lease: how many seconds a claim lasts; must be more than twice as long as any exchange.
    """

    database: Database
    campaign: str
    most: int = 1000
    lease: float = 300.0

    def require_room(self, reports: int) -> None:
        """Raise QueueFull if the queue has no place for `reports` more reports."""
        if (number := self.waiting()) + reports > self.most:
            raise QueueFull(
                f"{number} reports of campaign {self.campaign} wait to be sent, must be at most {self.most} with "
                f"{reports} more: deliver them, or give a larger most_queued"
            )

    def put(self, waiting: Sequence[Waiting]) -> None:
        """Queue all reports in `waiting`, or none if an error is raised; queued reports survive a power cut."""
        with self.database.change() as tables:
            self._insert(tables, waiting)

    def claim(
        self, now: float, most_rows: int, most_bytes: int, plain: bool, early: bool, turn: Turn, passes: bool = True
    ) -> Claimed | None:
        """Claim due reports of one campaign file, stream and token, the earliest first; None if no report is due.

        Each claimed report has a place under the cap. Reports for which there is no room are removed, and so are those
        that name a window that is over, because they would count in no other one.

        Args:
            now: seconds since 1970.
            most_rows: most reports of one claim.
            most_bytes: most bytes of all claimed reports together; one report is claimed even if it is longer.
            plain: whether to claim plain values too.
            early: whether to claim also reports that are not due yet.
            turn: the present window.
            passes: whether there is a pass for the present window; without one, no untried report that needs it goes.
        """
        known = {"campaign": self.campaign, "now": now, "lease": self.lease, "plain": plain, "early": early}
        known |= {"window": turn.window, "most_rows": most_rows, "passes": passes}
        # These SQL statements are put together from constants of this module only.
        free = f"FROM rows WHERE campaign = :campaign AND {_FREE} AND {_DUE} AND (:plain OR fingerprint <> '')"
        free += " AND (:passes OR NOT period OR is_tried)"
        columns = f"{_ALIKE}, id, body, value, due, is_tried, is_bound {free}"
        same = f"({_ALIKE}) = (:fingerprint, :stream, :collector, :cap, :period, :of_window)"
        with self.database.change() as tables:
            found = tables.execute(f"SELECT {columns} ORDER BY due, id LIMIT 1", known).fetchone()
            if found is None:
                return None
            first = _Row(*found)
            of = {**first._asdict(), **known, "of_window": first.window}
            alike = tables.execute(f"SELECT {columns} AND {same} ORDER BY due, id LIMIT :most_rows", of).fetchall()
            rows = [_Row(*row) for row in alike[: max(1, most_bytes // max(1, len(first.body)))]]
            going = self._going(tables, rows, turn) if first.fingerprint else rows
            claim = secrets.token_hex(16)
            tables.executemany(
                "UPDATE rows SET claim = ?, claimed_until = ? WHERE id = ?",
                [(claim, now + self.lease, row.id) for row in going],
            )
        return Claimed(
            claim,
            _waiting(first),
            tuple(row.id for row in going),
            tuple(_waiting(row) for row in going),
            tuple(row.id for row in going if not row.is_tried),
            first.window,
            len(rows) - len(going),
            (now, now + self.lease / 2.0),
            _is_late(first, turn),
        )

    def _going(self, tables: sqlite3.Connection, rows: Sequence[_Row], turn: Turn) -> list[_Row]:
        """Return tried reports and those for which there is room, give the latter their places, and remove the others.

        A report may arrive in its window or in any later one, so it needs room beside the reports that came in any of
        them, and beside all tried reports, which may arrive too.
        """
        stream, window = rows[0].stream, rows[0].window
        tried = "SELECT count(*) FROM rows WHERE campaign = ? AND stream = ? AND is_tried"
        (held,) = tables.execute(tried, (self.campaign, stream)).fetchone()
        room = max(0, rows[0].cap - held - turn.came(self._fact(tables, turn.fact), stream, window))
        new = [row.id for row in rows if not row.is_tried]
        tables.executemany(
            "UPDATE rows SET first_window = ?, is_tried = 1 WHERE id = ?", [(window, row) for row in new[:room]]
        )
        over = {row.id for row in rows} if _is_late(rows[0], turn) else set(new[room:])
        tables.executemany("DELETE FROM rows WHERE id = ?", [(row,) for row in over])
        return [row for row in rows if row.id not in over]

    def remove(self, claimed: Claimed, fact: str = "", remake: Remake | None = None) -> int:
        """Remove claimed reports that were sent or given up, and change a fact; return how many reports were there."""
        with self.database.change() as tables:
            number = sum(tables.execute("DELETE FROM rows WHERE id = ?", (row,)).rowcount for row in claimed.rows)
            if remake is not None:
                self._note(tables, fact, remake(self._fact(tables, fact), number))
            return number

    def give_back(self, claimed: Claimed, due: float | None = None) -> None:
        """End a claim. The claimed reports become due at `due`; if `due` is None, their due times do not change."""
        with self.database.change() as tables:
            self._give_back(tables, claimed, due, 0)

    def give_back_refused(self, claimed: Claimed, due: float, most: int, fact: str, remake: Remake) -> int:
        """End a claim of refused reports, and remove those that were refused `most` times; return how many these are.

        The fact is changed with them.
        """
        with self.database.change() as tables:
            self._give_back(tables, claimed, due, 1)
            often = "DELETE FROM rows WHERE campaign = ? AND refusals >= ?"
            number = tables.execute(often, (self.campaign, most)).rowcount
            if number:
                self._note(tables, fact, remake(self._fact(tables, fact), number))
            return number

    def _give_back(self, tables: sqlite3.Connection, claimed: Claimed, due: float | None, refused: int) -> None:
        tables.executemany(
            "UPDATE rows SET claim = '', claimed_until = 0, due = coalesce(?, due), refusals = refusals + ?"
            " WHERE id = ? AND claim = ?",
            [(due, refused, row, claimed.claim) for row in claimed.rows],
        )

    def put_off(self, claimed: Claimed, due: float) -> None:
        """End a claim of reports that came before their window: they have not arrived, and become due at `due`.

        A report of which an earlier attempt may have arrived keeps its place.
        """
        with self.database.change() as tables:
            tables.executemany(
                "UPDATE rows SET is_tried = is_tried AND NOT ?, claim = '', claimed_until = 0, due = ?"
                " WHERE id = ? AND claim = ?",
                [(row in claimed.new, due, row, claimed.claim) for row in claimed.rows],
            )

    def replace(self, claimed: Claimed, place: int, waiting: Sequence[Waiting]) -> bool:
        """Replace a claimed report, and return True; if it is gone or claimed by another process, only return False."""
        with self.database.change() as tables:
            changed = tables.execute(
                "DELETE FROM rows WHERE id = ? AND claim = ?", (claimed.rows[place], claimed.claim)
            ).rowcount
            if changed:
                self._insert(tables, waiting)
            return bool(changed)

    def renew(self, claims: Sequence[str], until: float) -> list[bool]:
        """Extend claims of reports that wait for an answer, to `until` at least; return which ones are still there."""
        last_longer = (
            "UPDATE rows SET claimed_until = CASE WHEN claimed_until > :until + :longest THEN :until"
            " ELSE max(claimed_until, :until) END WHERE campaign = :campaign AND claim = :claim"
        )
        known = {"until": until, "longest": 2 * LONGEST_WAIT, "campaign": self.campaign}
        with self.database.change() as tables:
            return [tables.execute(last_longer, {**known, "claim": claim}).rowcount > 0 for claim in claims]

    def settle(self, settled: Sequence[Settled]) -> int:
        """End claims of reports that waited for an answer, all at once; return how many reports were still there."""
        with self.database.change() as tables:
            return sum(
                tables.execute(
                    "UPDATE rows SET claim = '', claimed_until = 0, due = ?, body = coalesce(?, body)"
                    " WHERE campaign = ? AND claim = ?",
                    (one.due, one.body, self.campaign, one.claim),
                ).rowcount
                for one in settled
            )

    def waiting(self) -> int:
        """Return how many reports and plain values wait; reports that are claimed count too."""
        with self.database.change() as tables:
            return self._count(tables)

    def waiting_of(self, fact: str) -> tuple[str | None, list[Group]]:
        """Return a fact, and how many reports and plain values wait, by stream and attempts."""
        groups = (
            "SELECT stream, fingerprint = '', is_tried, is_bound, first_window, count(*) FROM rows WHERE campaign = ?"
            " GROUP BY 1, 2, 3, 4, 5"
        )
        with self.database.change() as tables:
            found = [
                Group(stream, bool(plain), bool(tried), bool(bound), window, number)
                for stream, plain, tried, bound, window, number in tables.execute(groups, (self.campaign,))
            ]
            return self._fact(tables, fact), found

    def next_due(self) -> float | None:
        """Return when the next report is due and no longer claimed, in seconds since 1970; None if no report waits."""
        with self.database.change() as tables:
            (due,) = tables.execute(
                "SELECT min(max(due, claimed_until)) FROM rows WHERE campaign = ?", (self.campaign,)
            ).fetchone()
            return None if due is None else float(due)

    def clear(self) -> int:
        """Remove all reports, values and facts of the campaign, the tokens' secret too; return how many rows waited."""
        with self.database.change() as tables:
            number = self._count(tables)
            for table in ("rows", "facts"):
                tables.execute(f"DELETE FROM {table} WHERE campaign = ?", (self.campaign,))  # noqa: S608  # two constants
            return number

    def clear_all(self) -> int:
        """Remove all reports, values and facts of every campaign in the database; return how many rows waited."""
        with self.database.change() as tables:
            number = int(tables.execute("SELECT count(*) FROM rows").fetchone()[0])
            tables.execute("DELETE FROM rows")
            tables.execute("DELETE FROM facts")
            return number

    def fact(self, name: str) -> str | None:
        """Return the fact that is stored under a name; None if there is no such fact."""
        with self.database.change() as tables:
            return self._fact(tables, name)

    def note(self, name: str, fact: str) -> None:
        """Store a fact under a name; an older fact with this name is replaced."""
        with self.database.change() as tables:
            self._note(tables, name, fact)

    def change(self, name: str, remake: Callable[[str | None], str]) -> None:
        """Store under a name the fact that `remake` makes of the older fact."""
        with self.database.change() as tables:
            self._note(tables, name, remake(self._fact(tables, name)))

    def noted_once(self, name: str, make: Callable[[], str]) -> str:
        """Return the fact with this name; if there is none, make and store it. All processes get the same fact."""
        with self.database.change() as tables:
            fact = self._fact(tables, name)
            if fact is None:
                fact = make()
                self._note(tables, name, fact)
            return fact

    def _fact(self, tables: sqlite3.Connection, name: str) -> str | None:
        row = tables.execute("SELECT fact FROM facts WHERE campaign = ? AND name = ?", (self.campaign, name)).fetchone()
        return None if row is None else str(row[0])

    def _note(self, tables: sqlite3.Connection, name: str, fact: str) -> None:
        tables.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (self.campaign, name, fact))

    def _count(self, tables: sqlite3.Connection) -> int:
        return int(tables.execute("SELECT count(*) FROM rows WHERE campaign = ?", (self.campaign,)).fetchone()[0])

    def _insert(self, tables: sqlite3.Connection, waiting: Sequence[Waiting]) -> None:
        tables.executemany(
            "INSERT INTO rows"
            " (campaign, fingerprint, stream, collector, cap, period, body, value, due, claim, claimed_until,"
            " first_window, is_bound) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(self.campaign, *_columns(one)) for one in waiting],
        )


def _is_late(row: _Row, turn: Turn) -> bool:
    return bool(row.is_bound) and row.window < turn.window


def _columns(one: Waiting) -> tuple[object, ...]:
    named = one.fingerprint, one.stream or "", one.collector, one.cap, one.period
    value = None if one.measurement is None else _octets(one.measurement)
    return *named, one.body, value, one.due, one.claim, one.claimed_until, one.window, one.window is not None


def _waiting(row: _Row) -> Waiting:
    kept = None if row.value is None else _measurement(row.value)
    found = Waiting(row.fingerprint, row.stream or None, bytes(row.body), kept, row.due)
    window = row.window if row.is_bound else None
    return replace(found, collector=row.collector, cap=row.cap, period=row.period, window=window)


def _octets(kept: Measurement) -> bytes:
    """Return a value as it is stored: as bytes, because a text in SQLite cannot hold a lone surrogate.

    Coordinates come after a byte that no text has.
    """
    by = ",".join(f"{axis}={coordinate}" for axis, coordinate in kept.by)
    return kept.value.encode(errors="surrogatepass") + (_COORDINATES + by.encode() if by else b"")


def _measurement(octets: bytes) -> Measurement:
    value, _, by = octets.partition(_COORDINATES)
    parts = (part.partition("=") for part in by.decode().split(",") if part)
    return Measurement(value.decode(errors="surrogatepass"), tuple((axis, coordinate) for axis, _, coordinate in parts))
