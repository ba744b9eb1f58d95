"""The texts that `hushcount init` writes: the deployment file, and an app that reports to the deployment."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address

from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import duration_text
from pipelines.commands.init.planned import Spans

_FILE = """\
# One machine and one operator, made by hushcount init. Paths are relative to this file.
# All its keys: docs/deployment-file.md
store = "store"  # segments, batches, results, and the logs of the parties' decisions
ledger = "ledger.db"  # charges every release: copy it after every run
collectors = ["one"]  # a window is due as soon as all of them have closed it

[windows]
{windows}
grace = {grace}  # how long late reports still count, and too few reports wait for more

[retention]  # older files are deleted, once every job has used them
segments = {kept}  # reports as clients sent them
shuffled = {kept}  # the same reports without their senders
released = {kept}  # sealed values that enough clients sent
dead_letters = {kept}  # rejected reports

[collector]
name = "one"
host = {host}  # put a proxy with TLS in front, which forwards /v1/ only
port = {port}
authentication = "client-token"  # the cap counts reports by this token

[metrics]
textfile = "run.prom"  # numbers of each run, for Prometheus' node_exporter

[next_epoch.{id}]
sign_with = "operator-keys"  # after a signed campaign file, an unsigned one is refused
{joins}
"""
_LISTED = "review = true  # discovered values join the dictionary when hushcount campaign review approves them"
_OPEN = "review = false  # any text is a value: discovered values join the items to follow, there is no dictionary"
_APP = '''\
"""An app that reports a value. It needs `pip install ./hushcount` and policy.json, and keeps its state in a folder."""

from datetime import timedelta
from pathlib import Path

from hushcount.delivery import Sender

here, window = Path(__file__).parent, timedelta(seconds={seconds})
with Sender({site!r}, here / "policy.json", folder=here / "app-state", window=window) as sender:
    print("report:", sender.report({value!r}))  # queued; a second one in a window is over_cap
    print("not queued:", sender.dropped)
print("waiting:", sender.waiting)  # sent at random times within ten minutes while an app runs, or when it runs next

# Send at once what waits: hushcount send --site {site} --policy policy.json --folder app-state
'''


def deployment_text(id: str, spans: Spans, host: str, port: int, *, listed: bool) -> str:
    """Return the deployment file of a campaign; `listed`: whether the campaign has a dictionary."""
    quoted = {name: f'"{duration_text(span)}"' for name, span in (("grace", spans.grace), ("kept", spans.kept))}
    # Quote an id with a dot, because in TOML an unquoted dot begins another table.
    name, joins = f'"{id}"' if "." in id else id, _LISTED if listed else _OPEN
    windows = _windows_text(spans.tiling)
    lines = _FILE.format(**quoted, windows=windows, host=f'"{host}"', port=port, id=name, joins=joins)
    return "".join(f"{_aligned(line)}\n" for line in lines.splitlines())


def site_of(host: str, port: int) -> str:
    """Return the address at which a client on this machine reaches a collector."""
    try:
        address = ip_address(host)
    except ValueError:
        return f"http://{host}:{port}"
    if address.is_unspecified:
        return f"http://127.0.0.1:{port}" if address.version == 4 else f"http://[::1]:{port}"
    return f"http://{host}:{port}" if address.version == 4 else f"http://[{host}]:{port}"


def app_text(site: str, value: str | float, window: timedelta) -> str:
    """Return the text of an app that reports a value."""
    return _APP.format(site=site, value=value, seconds=int(window.total_seconds()))


def _windows_text(tiling: Tiling) -> str:
    if isinstance(tiling.length, timedelta):
        said = "counted from Thursday, 1970-01-01, 00:00 UTC: windows of 7d begin on Thursdays"
        return f'length = "{duration_text(tiling.length)}"  # {said}'
    starts = f'\nstarts = "{tiling.starts}"' if tiling.length == "week" else ""
    return f'length = "{tiling.length}"  # of the calendar of this zone\nzone = "{tiling.zone}"{starts}'


def _aligned(line: str) -> str:
    """Align the comment after a value with the other comments of the file."""
    value, mark, comment = line.partition("  #")
    return f"{value.rstrip():<31}{mark}{comment}" if mark else line
