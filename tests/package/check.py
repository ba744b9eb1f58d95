"""Build the distributions of client, lanes and parties, and look into them: `make package`.

Keys and the rests of a build are planted in the folders; sdists and wheels must hold exactly what they name. With
`--used` (`make environments`) they are used as users do: the client must work with its three dependencies alone and
leave every other name to the app; the command must work in a directory with an app's modules. All is built in a copy,
so nothing is left in the checkout.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTIES = ("keys", "service", "shuffler", "evaluator", "issuer", "analyzer", "aux_server", "pipelines")
ABOUT = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "requirements.lock")
# Folders that are projects of their own: what each ships beside modules.
OWN = {
    "hushcount": ("py.typed", "formats/unassigned-13.0.txt", "formats/invisible-13.0.txt", "designs/designs.json"),
    "sealed_lanes": ("py.typed",),
}
PLANTED = (
    "hushcount/client.key", "hushcount/campaigns/operator.key", "hushcount/build/lib/hushcount/stale.py",
    "hushcount/designs/secret.txt", "keys/private.key", "pipelines/.env", "shuffler/reports.blocks",
    "sealed_lanes/box.key",
)  # fmt: skip
APPS = (*PARTIES, "sealed_lanes", "tests")
CLIENT = """
import sys
from pathlib import Path
from hushcount import Campaign, Client, Policy
for name in sys.argv[2:]:
    assert Path(__import__(name).__file__).parent == Path(__file__).parent, name
def client():
    return Client(Campaign.read(sys.argv[1]), policy=Policy.trusting())
lengths = {len(client().report(value)) for value in ("a", "b", "not listed", "")}
assert len(lengths) == 1, lengths
pairs = {len(client().discovery_report(value)) for value in ("a", "not listed", "")}
assert len(pairs) == 1, pairs
assert not {"sqlite3", "ssl", "http.client"} & set(sys.modules), "importing the client brings what delivery needs"
import hushcount.delivery
heavy = {"apache_beam", "numba", "scipy", "pyarrow", "typer", "rich", "matplotlib"} & set(sys.modules)
assert not heavy, heavy
"""


@dataclass(frozen=True)
class Built:
    """A distribution's two files."""

    sdist: Path
    wheel: Path


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        scratch = Path(made).resolve()
        tree = copy(scratch / "tree")
        before = {name: files(tree / name) for name in OWN}
        own = {name: build(tree / name, scratch / f"{name}-dist") for name in OWN}
        assert {name: files(tree / name) for name in OWN} == before, "a build left something in its folder"
        parties = build(tree, scratch / "parties-dist")
        if sys.argv[1:] == ["--used"]:
            use(scratch, tree, *(own[name].wheel for name in OWN), parties.wheel)
            return
        for name, built in own.items():
            check_own(name, built)
        check_parties(parties)
        print(f"distributions: {', '.join(own)} and hushcount-server hold what they must, and nothing else")


def use(scratch: Path, tree: Path, client: Path, lanes: Path, parties: Path) -> None:
    """Use the wheels, and all from a checkout, in fresh environments."""
    app = scratch / "app"
    app.mkdir()
    for name in APPS:
        (app / f"{name}.py").touch()
    campaign = use_parties(scratch, app, (client, lanes, parties))
    use_client(scratch, app, client, campaign)
    use_editable(scratch, tree)
    print("distributions: they work in fresh environments, beside an app's own modules")


def copy(tree: Path) -> Path:
    """Copy what distributions are built from, and plant what must not get into one."""
    tree.mkdir()
    for name in (*OWN, *PARTIES):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    for name in ABOUT:
        shutil.copy(ROOT / name, tree)
    for name in PLANTED:
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tree


def build(folder: Path, into: Path) -> Built:
    """Build an sdist, and the wheel from this sdist."""
    run(sys.executable, "-m", "build", "--outdir", str(into), str(folder))
    (sdist,), (wheel,) = into.glob("*.tar.gz"), into.glob("*.whl")
    return Built(sdist, wheel)


def check_own(name: str, built: Built) -> None:
    folder = ROOT / name
    data = {path.relative_to(folder).as_posix() for pattern in OWN[name] for path in folder.glob(pattern)}
    shipped = {module.removeprefix(f"{name}/") for module in modules((name,))} | data
    # Hatchling adds the file by which it would leave out what is not under version control.
    about = {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO"}
    same(f"the sdist of {name}", in_sdist(built) - {".gitignore"}, shipped | about)
    same(f"the wheel of {name}", in_wheel(built), {f"{name}/{path}" for path in shipped})


def check_parties(built: Built) -> None:
    named = re.findall(r'^        "([a-z_.]+)",$', (ROOT / "setup.py").read_text(), re.MULTILINE)
    pipelines = ROOT / "pipelines"
    units = pipelines / "commands" / "init" / "systemd"
    data = (*(pipelines / "pages" / "static").glob("*.*"), *units.glob("hushcount-*"))
    shipped = modules(PARTIES) | {path.relative_to(ROOT).as_posix() for path in data}
    found = {name.removesuffix("/__init__.py").replace("/", ".") for name in shipped if name.endswith("/__init__.py")}
    same("setup.py", set(named), found)
    made = {name for name in in_sdist(built) if not name.startswith("hushcount_server.egg-info/")}
    same("the parties' sdist", made, shipped | {*ABOUT, "PKG-INFO", "setup.cfg"})
    same("the parties' wheel", in_wheel(built), shipped)


def modules(tops: Iterable[str]) -> set[str]:
    """Return the modules of the checkout's packages, as paths."""
    inits = [path for top in tops for path in (ROOT / top).rglob("__init__.py")]
    return {path.relative_to(ROOT).as_posix() for init in inits for path in init.parent.glob("*.py")}


def in_sdist(built: Built) -> set[str]:
    with tarfile.open(built.sdist) as archive:
        return {one.name.partition("/")[2] for one in archive.getmembers() if one.isfile()}


def in_wheel(built: Built) -> set[str]:
    """Return a wheel's files without its own description, which has the licence."""
    with zipfile.ZipFile(built.wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    inside = {name for name in names if ".dist-info/" not in name}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names), names
    return inside


def same(what: str, held: set[str], wanted: set[str]) -> None:
    if held != wanted:
        sys.exit(f"{what}: must not have {sorted(held - wanted)}, lacks {sorted(wanted - held)}")


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def environment(home: Path) -> Path:
    """Make a fresh environment; return its commands' folder."""
    venv.create(home, with_pip=True)
    return home / "bin"


def lend(home: Path) -> None:
    """Let an environment import what is installed here: the parties' dependencies, without what is editable."""
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib"))


def install(commands: Path, *what: str) -> None:
    pip = (str(commands / "python"), "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check")
    run(*pip, *what)


def use_client(scratch: Path, app: Path, wheel: Path, campaign: Path) -> None:
    """Make reports in an app that has modules of the parties' names, with nothing but the client installed."""
    commands = environment(scratch / "client")
    (packages,) = (scratch / "client").glob("lib/python*/site-packages")
    install(commands, str(wheel))
    ours = {path.name for path in packages.iterdir() if path.name.partition("-")[0] in ("hushcount", *APPS)}
    version = wheel.name.split("-")[1]
    same("site-packages", ours, {"hushcount", f"hushcount-{version}.dist-info"})
    (record,) = packages.glob("hushcount-*.dist-info/RECORD")
    same("the client", {line.partition("/")[0] for line in record.read_text().splitlines()}, ours)
    (app / "app.py").write_text(CLIENT)
    run(str(commands / "python"), "-W", "error", "app.py", str(campaign), *APPS, cwd=app)


def use_parties(scratch: Path, app: Path, wheels: tuple[Path, ...]) -> Path:
    """Make a deployment by the installed command, in the app's directory; return its campaign file."""
    commands = environment(scratch / "parties")
    install(commands, "--no-deps", *map(str, wheels))
    lend(scratch / "parties")
    dictionary, deployment = scratch / "items.txt", scratch / "deployment"
    dictionary.write_text("a\nb\nc\n")
    init = (str(commands / "hushcount"), "init", str(deployment), "--dictionary", str(dictionary))
    run(*init, "--discovery-epsilon", "1", cwd=app)
    return deployment / "campaign.json"


def use_editable(scratch: Path, tree: Path) -> None:
    """Import them from the checkout that they are installed from."""
    commands = environment(scratch / "editable")
    folders = [str(tree / name) for name in OWN] + [str(tree)]
    install(commands, "--no-deps", *(word for folder in folders for word in ("--editable", folder)))
    lend(scratch / "editable")
    names = (*OWN, "pipelines")
    origins = f"import {', '.join(names)}; print({', '.join(f'{name}.__file__' for name in names)})"
    found = run(str(commands / "python"), "-c", origins, cwd=scratch).split()
    assert found == [str(tree / name / "__init__.py") for name in names], found
    run(str(commands / "hushcount"), "--version", cwd=scratch)


def run(*command: str, cwd: Path | None = None) -> str:
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=alone, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
