"""The command of the shuffler's image: its own jobs only, so that no package that knows a key need be installed."""

from __future__ import annotations

from pipelines.cli import HUSHCOUNT, PUBLISH
from pipelines.console.command_table import Row, new_app
from pipelines.entry import main

ROWS = tuple(row for row in HUSHCOUNT if row.name in ("shuffle", "collect", "run", "status", "doctor"))
# What epoch review reads, the shuffler does not have.
EPOCH = Row("epoch", "Publish what clients and collectors use from a moment on.", (PUBLISH,))

app = new_app("The shuffler's part of Hushcount.", (*ROWS, EPOCH))

if __name__ == "__main__":
    main(app)
