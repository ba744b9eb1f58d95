"""Commands that only look change nothing, and need no right to."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.collecting import collect
from tests.support.jobs import cli, done
from tests.support.site import Site, values

LOOKS = ("status", "doctor --all", "ledger show", "ledger check", "ask top --campaign words")


def argv(look: str, site: Site) -> list[str]:
    ledger = look.startswith("ledger")
    return [*look.split(), *(["--ledger", str(site.root / "ledger.db")] if ledger else ["--config", str(site.config)])]


def everything(root: Path) -> dict[str, object]:
    return {str(one): (one.stat().st_mtime_ns, one.read_bytes() if one.is_file() else None) for one in root.rglob("*")}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("looking"), tail='[alerts]\ncommand = ["true"]\n')
    done("ledger", "set", "--ledger", site.root / "ledger.db", "--campaign", "words", "--epsilon", 100, "--delta", 0.1)
    collect(site.store, site.campaign, values(200), day=0)
    site.run(1.1)
    return site


def on_read_only_mount(root: Path, asked: list[list[str]]) -> list[list[object]]:
    """Run commands in a process that cannot write below a folder, root or not: status and output of each."""
    code = (
        "import json, sys; from tests.support.jobs import cli; from pathlib import Path\n"
        "try: Path(sys.argv[1], 'written').touch()\n"
        "except OSError: pass\n"
        "else: sys.exit('the mount is not read-only')\n"
        "runs = [cli(*one) for one in json.loads(sys.argv[2])]\n"
        "print(json.dumps([[run.status, run.out, run.err] for run in runs]))"
    )
    mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77; shift; exec "$@"'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(root)]
    try:
        run = subprocess.run(  # noqa: S603  # our own words
            [*command, sys.executable, "-c", code, str(root), json.dumps(asked)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("no unshare here: nothing was tried on a read-only mount")
    if run.returncode in (1, 77) and "not permitted" in run.stderr:
        pytest.skip(f"no mount may be made here: nothing was tried on a read-only one: {run.stderr.strip()}")
    assert run.returncode == 0, run.stderr
    told: list[list[object]] = json.loads(run.stdout)
    return told


def test_looks_say_the_same_on_a_read_only_mount(
    site: Site, tmp_path: Path, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    sites = {"log": site.copied(tmp_path / "log"), "no log yet": site.copied(tmp_path / "none")}
    shutil.rmtree(sites["no log yet"].store / "log")
    asked = [(name, look, argv(look, one)) for name, one in sites.items() for look in LOOKS]
    told = on_read_only_mount(tmp_path, [arguments for _, _, arguments in asked])
    for (name, look, arguments), (status, out, err) in zip(asked, told, strict=True):
        with subtests.test(name=name, look=look):
            there = cli(*arguments)
            if look == "doctor --all":
                # It says what cannot be written, and goes on.
                assert "numbers of words" in str(out)
            else:
                assert (status, out) == (there.status, there.out), err


def test_looks_change_no_file_and_make_none(site: Site, tmp_path: Path, subtests: pytest.Subtests) -> None:
    copy = site.copied(tmp_path / "site")
    for missing in (False, True):
        if missing:
            shutil.rmtree(copy.store / "log")
        before = everything(copy.root)
        for look in LOOKS:
            if look != "doctor --all":
                with subtests.test(look=look, missing=missing):
                    cli(*argv(look, copy))
                    assert everything(copy.root) == before
