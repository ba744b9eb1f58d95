"""The command of the shuffler's image: only the shuffler's jobs, so that no package for keys is installed."""

from __future__ import annotations

from pipelines.cli import HUSHCOUNT, PUBLISH, SHUFFLE
from pipelines.console.command_table import Row, new_app
from pipelines.entry import main

ROWS = tuple(row for rows in HUSHCOUNT.values() for row in rows if row.name in ("collect", "run", "status", "doctor"))
JOB = Row("job", "Run the shuffler's job by hand.", (SHUFFLE,), "shuffle --help")
# Without `campaign review`: the shuffler does not have the files that it reads.
CAMPAIGN = Row("campaign", "Publish a campaign file for clients and collectors.", (PUBLISH,), "publish --help")

app = new_app("The shuffler's part of Hushcount.", {"Commands": (*ROWS, JOB, CAMPAIGN)})

if __name__ == "__main__":
    main(app)
