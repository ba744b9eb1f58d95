"""The command of the shuffler's image: its own jobs only, so that no package that knows a key need be installed."""

from __future__ import annotations

from pipelines.cli import Epoch, Hushcount
from pipelines.console.command_table import Commands, Row, new_app
from pipelines.entry import main


class _Epoch(Commands):
    """The commands of `hushcount epoch` that need no result."""

    rows = tuple(row for row in Epoch.rows if row.name == "publish")


class _Shuffler(Commands):
    """The commands of the shuffler."""

    rows = (
        *(row for row in Hushcount.rows if row.name in ("shuffle", "collect", "run", "status")),
        Row("epoch", "Publish what is collected from when on.", _Epoch),
    )


app = new_app("The shuffler's part of Hushcount.", _Shuffler)


@app.callback()
def options() -> None:
    """The shuffler's part of Hushcount."""


if __name__ == "__main__":
    main(lambda: app)
