"""The whole curves of charges, beside their rows: for limits whose charges compose jointly, and only there.

A ledger without the table has no curves, and its charges compose by their epsilon and delta. So has a row whose curve
was written for another cost: it is of an older program, which knew no curves. `Charge.window` holds a curve in memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from hushcount.errors import FormatError
from hushcount.privacy.blanket import BlanketLaw
from hushcount.privacy.joint import Window
from pipelines.ledger.charges import Charge, digest_of

_TABLE = """CREATE TABLE IF NOT EXISTS curves (
    key TEXT PRIMARY KEY, cost TEXT NOT NULL, epsilon REAL NOT NULL, single REAL NOT NULL, pair REAL NOT NULL,
    excess REAL NOT NULL, reports INTEGER NOT NULL, of_client INTEGER NOT NULL, digest TEXT NOT NULL)"""


def put_curve(connection: sqlite3.Connection, charge: Charge) -> None:
    """Write a charge's curve in place of an earlier one; a charge without a curve loses an earlier one."""
    connection.execute(_TABLE)
    connection.execute("DELETE FROM curves WHERE key = ?", (charge.key,))
    window = charge.window
    if window is None:
        return
    law = window.law
    values: dict[str, Any] = {
        "key": charge.key, "cost": _cost(charge), "epsilon": float(law.epsilon), "single": float(law.single),
        "pair": float(law.pair), "excess": float(law.excess), "reports": window.reports, "of_client": window.of_client,
    }  # fmt: skip
    values["digest"] = digest_of(values)
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO curves ({', '.join(values)}) VALUES ({marks})", [*values.values()])  # noqa: S608  # our own names


def read_curves(connection: sqlite3.Connection) -> Mapping[tuple[str, str], Window]:
    """Return the curves of a ledger, by key and cost of their charges; raises FormatError if a row was altered."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'curves'").fetchone():
        return {}
    return {(row["key"], row["cost"]): _window(row) for row in connection.execute("SELECT * FROM curves")}


def curve_of(charge: Charge, curves: Mapping[tuple[str, str], Window]) -> Window | None:
    """Return the curve of a charge, if one was written for its present cost."""
    return curves.get((charge.key, _cost(charge)))


def _cost(charge: Charge) -> str:
    return digest_of([float(charge.epsilon), float(charge.delta), charge.per, charge.local])


def _window(row: sqlite3.Row) -> Window:
    values = dict(row)
    try:
        if values.pop("digest") == digest_of(values):
            law = BlanketLaw(*(values[name] for name in ("epsilon", "single", "pair", "excess")))
            return Window(law, values["reports"], values["of_client"])
    except (TypeError, ValueError):
        pass
    raise FormatError(f"the ledger's curve {row['key']} was altered: restore the ledger from a copy")
