"""systemd's units of a new deployment: those of deploy/systemd, with other paths and another user."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pipelines.commands.init.units import User, units
from tests.support.jobs import done

SHIPPED = Path(__file__).parents[4] / "deploy" / "systemd"
SOMEBODY = User("somebody", "people", 1234, 1234)
CHANGED = {
    "ExecStart", "User", "Group", "InaccessiblePaths", "ReadWritePaths", "ReadOnlyPaths", "StateDirectory",
    "StateDirectoryMode", "ProtectHome",
}  # fmt: skip


def settings(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if line and line[0] not in "#[")
    return {name: value for name, _, value in pairs}


def test_a_unit_is_the_shipped_one_but_for_its_paths_and_its_user() -> None:
    for name, text in units(Path("/srv/usage"), SOMEBODY).items():
        here, there = settings(text), settings((SHIPPED / name).read_text())
        assert {one for one in here.keys() | there.keys() if here.get(one) != there.get(one)} <= CHANGED
        assert "/etc/hushcount" not in text
        assert "/opt/hushcount" not in text
        if name.endswith(".service"):
            assert (here["User"], here["Group"], here["ProtectSystem"]) == ("somebody", "people", "strict")
    made = {name: settings(text) for name, text in units(Path("/srv/usage"), SOMEBODY).items()}
    collect, run = made["hushcount-collect.service"], made["hushcount-run.service"]
    assert collect["ReadWritePaths"] == "/srv/usage/journal /srv/usage/store"
    assert collect["InaccessiblePaths"] == "-/srv/usage/keys -/srv/usage/operator-keys"
    assert (run["ReadWritePaths"], "InaccessiblePaths" in run) == ("/srv/usage", False)
    assert run["ReadOnlyPaths"] == "/srv/usage/keys /srv/usage/operator-keys"


def test_what_lies_below_a_home_is_not_hidden_from_its_service() -> None:
    for text in units(Path("/home/somebody/usage"), SOMEBODY).values():
        assert "ProtectHome=yes" not in text


@pytest.mark.parametrize("name", ["usage", "100 % of \"us\" & $HOME 'and' \\you"])
@pytest.mark.long(but=("usage",))
def test_systemd_takes_the_units(tmp_path: Path, name: str) -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd-analyze is not installed: the units were NOT held against systemd's own reader")
    done("init", tmp_path / name, "--id", "usage", "--open-domain")
    made = sorted(map(str, (tmp_path / name / "systemd").iterdir()))
    assert [os.path.basename(one) for one in made] == sorted(units(tmp_path, SOMEBODY))
    # It reads no unit in a directory of such a name.
    copies = [shutil.copy(one, tmp_path) for one in made]
    checked = subprocess.run([tool, "verify", *copies], capture_output=True, text=True, check=False)  # noqa: S603
    assert checked.returncode == 0, checked.stderr
    assert [line for line in checked.stderr.splitlines() if "hushcount" in line] == []
