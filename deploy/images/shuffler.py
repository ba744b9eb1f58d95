"""The command of the shuffler's image: its own jobs only, so that no package that knows a key need be installed."""

from __future__ import annotations

from pipelines.cli import HUSHCOUNT, PUBLISH, SHUFFLE
from pipelines.console.command_table import Row, new_app
from pipelines.entry import main

ROWS = tuple(row for rows in HUSHCOUNT.values() for row in rows if row.name in ("collect", "run", "status", "doctor"))
JOB = Row("job", "Run the shuffler's job by hand.", (SHUFFLE,), "shuffle --help")
# What campaign review reads, the shuffler does not have.
CAMPAIGN = Row("campaign", "Publish what clients and collectors use from a moment on.", (PUBLISH,), "publish --help")

app = new_app("The shuffler's part of Hushcount.", {"Commands": (*ROWS, JOB, CAMPAIGN)})

if __name__ == "__main__":
    main(app)
