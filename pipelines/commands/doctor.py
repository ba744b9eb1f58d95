"""hushcount doctor: is a deployment well, and what to do."""

from __future__ import annotations

from rich.text import Text

from hushcount.errors import HushcountError
from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, out_console, reported, show_json
from pipelines.console.options import ConfigOption
from pipelines.console.tables import show_table

app = new_app()


@app.command("doctor")
@reported
def doctor(config: ConfigOption, as_json: JsonOption = False) -> None:
    """Check keys, clocks, storage, disks, campaigns, numbers, and say what to do; exit status 1 where something is bad.

    Example: hushcount doctor --config deployment.toml
    """
    from pipelines.audit.doctor import examine
    from pipelines.deployment.settings import Deployment

    checks = examine(Deployment.read(config))
    if as_json:
        show_json([{"name": one.name, "verdict": one.verdict, "says": one.says} for one in checks])
    else:
        styles = {"good": "green", "warning": "yellow", "bad": "bold red"}
        rows = [(Text(check.verdict, styles[check.verdict]), check.name, check.says) for check in checks]
        show_table(out_console(), ("verdict", "what", "found"), rows, words=("what", "found"))
    bad = sum(check.verdict == "bad" for check in checks)
    if bad:
        raise HushcountError(f"{bad} of {len(checks)} checks are bad: see above")
