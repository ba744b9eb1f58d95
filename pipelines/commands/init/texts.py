"""The texts of a new deployment: its file, and an app that reports to it."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address

from hushcount.collection.windows import duration_text
from pipelines.commands.init.planned import Spans

_FILE = """\
# One machine and one operator, made by hushcount init. Paths are relative to this file.
# Every key of it: docs/deployment-file.md
store = "store"  # segments, batches, results, and the log of what was decided
ledger = "ledger.db"  # charges every release: copy it after every run
collectors = ["one"]  # a window is due as soon as each of them closed it

[windows]
length = {window}  # counted from Thursday, 1970-01-01, 00:00 UTC: windows of 7d begin on Thursdays
grace = {grace}  # late reports count so long; too few of them wait so long for more

[retention]  # what is older is deleted, once every step has used it
segments = {kept}  # what clients sent
shuffled = {kept}  # the same without senders
released = {kept}  # sealed values that enough clients sent
dead_letters = {kept}  # what was rejected

[collector]
name = "one"
host = {host}  # put a proxy with TLS before it, which forwards /v1/ only
port = {port}
authentication = "client-token"  # the cap counts by the token

[metrics]
textfile = "run.prom"  # numbers of each run, for Prometheus' node_exporter

[next_epoch.{id}]
sign_with = "operator-keys"  # after a signed campaign file none is published unsigned
{joins}
"""
_LISTED = "review = true  # found values join the dictionary when hushcount campaign review approves them"
_OPEN = "review = false  # any text is a value: what is found is followed, and there is no dictionary that it joins"
_APP = '''\
"""An app reports a value: it needs `pip install ./hushcount` and policy.json, and keeps what it must in a folder."""

from datetime import timedelta
from pathlib import Path

from hushcount.delivery import Sender

policy, window = Path(__file__).with_name("policy.json"), timedelta(seconds={seconds})
with Sender({site!r}, policy, folder="app-state", window=window) as sender:
    sender.report({value!r})  # on disk when it returns; a thread sends it within minutes
'''


def deployment_text(id: str, spans: Spans, host: str, port: int, *, listed: bool) -> str:
    """Return the deployment file of a campaign; `listed`: it has a dictionary."""
    quoted = {name: f'"{duration_text(span)}"' for name, span in vars(spans).items()}
    # A dot would begin a table in the table.
    name, joins = f'"{id}"' if "." in id else id, _LISTED if listed else _OPEN
    lines = _FILE.format(**quoted, host=f'"{host}"', port=port, id=name, joins=joins)
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


def app_text(site: str, value: str, window: timedelta) -> str:
    """Return an app that reports a value."""
    return _APP.format(site=site, value=value, seconds=int(window.total_seconds()))


def _aligned(line: str) -> str:
    """Put the comment after a value where the others of the file are."""
    value, mark, comment = line.partition("  #")
    return f"{value.rstrip():<31}{mark}{comment}" if mark else line
