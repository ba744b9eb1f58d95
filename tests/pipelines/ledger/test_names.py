"""One ledger under two names: one draw for a charge, whatever the names are, and wherever a process is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.ledger.charges import Charge
from pipelines.ledger.draws import draw_path
from pipelines.ledger.file import opened, read_charges
from pipelines.ledger.overview import check, set_limit
from tests.pipelines.conftest import World
from tests.pipelines.ledger.test_charging import batch
from tests.support.jobs import done, new_campaign, refused

RUN = """
import json, os, secrets, signal, sys
from pathlib import Path
from hushcount.campaigns.campaign import Campaign
from hushcount.errors import HushcountError
from hushcount.privacy.statement import statement
from hushcount.senders import Senders
from pipelines.ledger.charging import charging, cost_of
from pipelines.outputs.staging import staged
from pipelines.outputs.summary import HopSummary

path, folder = sys.argv[1:3]
campaign = Campaign.read(path)
upstream = HopSummary(
    "shuffle", 0, 0, {}, {}, campaign="small", fingerprint="0" * 64, upstream=(), senders=Senders("client-token")
)
stated = statement(campaign, None, Senders("client-token"))

def release(ledger, out, here):
    with (
        charging(Path(ledger), campaign, "discover", upstream, folder, drawn=True) as charge,
        staged(out, False) as directory,
    ):
        bins = Path(directory) / "bins"
        bins.mkdir()
        (bins / "00000.blocks").write_bytes(b"draw " * 20)
        here("drawn")
        charge.keep_draw(str(bins))
        here("fixed")
        ledger_part = charge.commit(cost_of(stated, "discover"), 0).data()
        here("committed")
        summary = {"hop": "release", "accepted": None, "privacy": stated.data(), "ledger": ledger_part}
        (Path(directory) / "summary.json").write_text(json.dumps(summary, default=str))

def said(name):
    print(name, flush=True)
    sys.stdin.readline()
"""
STEPS = """
try:
    release(*sys.argv[3:5], said)
    print("released", flush=True)
except HushcountError as error:
    print(error, flush=True)
"""
CRASHES = """
KINDS = {"open", "os.mkdir", "os.link", "os.remove", "os.rename", "os.rmdir", "sqlite3.connect", "os.chmod"}

def tried(root, point):
    # Try to release in a process that is killed at that operation of it; return its status and the operation.
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        left = [point]
        def heard(event, arguments):
            if event in KINDS and left[0]:
                left[0] -= 1
                if not left[0]:
                    os.write(writer, event.encode())
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(heard)
        status = 0
        try:
            release(f"{root}/ledger.db", f"{root}/out{'' if point else secrets.token_hex(4)}", lambda name: None)
        except BaseException as error:
            os.write(writer, str(error).encode())
            status = 1
        os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as stream:
        return os.waitpid(child, 0)[1], stream.read()

point, status = 0, -1
while status:
    point += 1
    root = f"{sys.argv[3]}/{point}"
    os.mkdir(root)
    status, event = tried(root, point)
    print(json.dumps([point, status, event, os.path.exists(f"{root}/out"), tried(root, 0), tried(root, 0)]), flush=True)
"""


@pytest.fixture(scope="session")
def campaign_path(world: World) -> Path:
    (world.root / "names").mkdir()
    return new_campaign(world.root / "names" / "drawn.json", world.keys, mechanism="gcms", discovery=1.0)


class Run:
    """A process that draws a release, and waits at each step until it is told to go on."""

    def __init__(self, campaign: Path, folder: str, ledger: Path, out: Path) -> None:
        arguments = [sys.executable, "-c", RUN + STEPS, str(campaign), folder, str(ledger), str(out)]
        self.process = subprocess.Popen(  # noqa: S603  # our own script
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.said = self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go(self) -> str:
        """Let it go on to the next step, and return what it says there."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.said = self._line()
        return self.said

    def end(self) -> str:
        printed = self.process.communicate("go\n" * 4, timeout=120)[0].splitlines()
        return printed[-1] if printed else self.said


def charges(ledger: Path) -> list[Charge]:
    with opened(ledger) as connection:
        return read_charges(connection)


def handed_out(*outs: Path) -> set[bytes]:
    return {path.read_bytes() for out in outs for path in out.glob("bins/*.blocks")}


@pytest.mark.parametrize("link", ["of the file", "of its folder", "two dots"])
@pytest.mark.long(but=("of the file",))
def test_two_processes_under_two_names_that_are_one_path_hand_out_one_draw(
    tmp_path: Path, campaign_path: Path, link: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    ledger = home / "ledger.db"
    set_limit(ledger, "drawn", 2.5, 1e-6, None)
    (tmp_path / "folder").symlink_to(home)
    (tmp_path / "file.db").symlink_to(ledger)
    names = {
        "of the file": tmp_path / "file.db", "of its folder": tmp_path / "folder" / "ledger.db",
        "two dots": home / ".." / "home" / "ledger.db",
    }  # fmt: skip
    folder, outs = batch(tmp_path, "in"), [tmp_path / "a", tmp_path / "b"]
    runs = [Run(campaign_path, folder, name, out) for name, out in zip((ledger, names[link]), outs, strict=True)]
    assert [run.said for run in runs] == ["drawn", "drawn"]
    assert [run.go() for run in reversed(runs)] == ["fixed", "fixed"]
    assert [run.end() for run in runs] == ["released", "released"]
    assert len(handed_out(*outs)) == 1
    (charge,) = charges(ledger)
    assert charge.draw is not None
    assert sorted(path.name for path in home.iterdir()) == ["ledger.db", "ledger.db.draws", "ledger.db.runs"]
    assert check(names[link]).charges == 1


@pytest.mark.long
def test_two_processes_under_two_names_that_nothing_tells_are_one_hand_out_one_draw(
    tmp_path: Path, campaign_path: Path
) -> None:
    """As two containers see one file: while the first one works the ledger gets another name, and its draws do not."""
    one, other = tmp_path / "one.db", tmp_path / "other.db"
    set_limit(one, "drawn", 5.0, 1e-5, None)
    folder, outs = batch(tmp_path, "in"), [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    first = Run(campaign_path, folder, one, outs[0])
    assert first.go() == "fixed"
    one.rename(other)
    assert Run(campaign_path, folder, other, outs[1]).end() == "released"
    other.rename(one)
    assert first.end() == "released"
    # Later, too.
    assert Run(campaign_path, folder, one, outs[2]).end() == "released"
    one.rename(other)
    assert len(handed_out(*outs)) == 1
    assert len(charges(other)) == 1


def test_a_ledger_with_two_hard_links_is_refused(tmp_path: Path) -> None:
    """SQLite's journal has the name of the file: a write that was killed under one name is not taken back under two."""
    ledger = tmp_path / "ledger.db"
    set_limit(ledger, "drawn", 2.5, 1e-6, None)
    os.link(ledger, tmp_path / "second.db")
    for name in ("ledger.db", "second.db"):
        refused("ledger", "check", "--ledger", tmp_path / name, says=["2 names"])
    # But for the one under which it was made, by a process that was killed.
    (tmp_path / "second.db").rename(tmp_path / ".ledger.db.0123.tmp")
    done("ledger", "check", "--ledger", ledger)
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]


@pytest.mark.long
def test_wherever_a_process_that_draws_is_killed_one_draw_is_handed_out(tmp_path: Path, campaign_path: Path) -> None:
    """At each operation on a file, from the first look at the ledger to the renaming of the output."""
    (tmp_path / "points").mkdir()
    run = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, "-c", RUN + CRASHES, campaign_path, batch(tmp_path, "in"), tmp_path / "points"],
        check=True, stdout=subprocess.PIPE, text=True, timeout=500,
    )  # fmt: skip
    points = [json.loads(line) for line in run.stdout.splitlines()]
    assert {event for _, _, event, *_ in points} >= {"os.link", "os.mkdir", "os.rename", "open", "sqlite3.connect"}
    for point, status, event, out, *again in points:
        assert status == (0 if event == "" else 9)
        assert again == [[0, ""], [0, ""]], (point, event)
        root = tmp_path / "points" / str(point)
        outs = [path for path in root.iterdir() if path.name.startswith("out")]
        assert len(outs) == 2 + out
        (charge,) = charges(root / "ledger.db")
        assert handed_out(*outs) == {draw_path(root / "ledger.db", charge.key).read_bytes()}
        assert check(root / "ledger.db").reservations == 0
    assert not points[-1][2]
