"""The command of the evaluator's image: it serves evaluations, and manages keys and campaigns; it has no jobs."""

from __future__ import annotations

from pipelines.cli import HUSHCOUNT, KEYS, PUBLISH
from pipelines.console.command_table import Row, new_app
from pipelines.entry import main

ROWS = tuple(row for row in HUSHCOUNT["Operate"] if row.name == "evaluate")
# `rehearse` opens reports, and this image has no code for that.
OWN_KEYS = Row(
    "keys",
    "Make, rotate, retire and list keys.",
    tuple(row for row in KEYS if row.name != "rehearse"),
    "list --keys keys",
)
CAMPAIGN = Row("campaign", "Publish a campaign file that clients may ask about.", (PUBLISH,), "publish --help")

app = new_app("The evaluator's part of Hushcount.", {"Commands": (*ROWS, OWN_KEYS, CAMPAIGN)})

if __name__ == "__main__":
    main(app)
