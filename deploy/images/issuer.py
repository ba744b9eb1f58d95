"""The command of the issuer's image: it signs passes, and makes the keys for that; it has no jobs and no campaigns."""

from __future__ import annotations

from pipelines.cli import HUSHCOUNT, KEYS
from pipelines.console.command_table import Row, new_app
from pipelines.entry import main

ROWS = tuple(row for row in HUSHCOUNT["Operate"] if row.name == "issue")
OWN_KEYS = Row("keys", "Make the keys of passes.", tuple(row for row in KEYS if row.name == "passes"), "passes --help")

app = new_app("The issuer's part of Hushcount.", {"Commands": (*ROWS, OWN_KEYS)})

if __name__ == "__main__":
    main(app)
