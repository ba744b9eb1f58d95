"""Build the sdist and the wheel, look into them, and use the wheel as a user would: `make package`.

Checks that no key, test or datum is in either, that the client works in an environment with its four dependencies only,
and that every package that setup.py names is in the wheel.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What is named after secrets may hold one, unless it is a module, as the one that reads them from where they are kept.
FORBIDDEN = re.compile(
    r"\.key$|\.npz$|\.blocks$|(^|/)(tests|examples|\.venv|demo-output)/|\.env$|secret(?![^/]*\.py$)", re.IGNORECASE
)
PACKAGES = re.findall(r'^        "([a-z_.]+)",$', (ROOT / "setup.py").read_text(), re.MULTILINE)
CLIENT = """
import json, sys
from hushcount import Campaign, Client
client = Client(Campaign.read(sys.argv[1]), uncapped=True)
lengths = {len(client.report(value)) for value in ("a", "b", "not listed", "")}
assert len(lengths) == 1, lengths
pairs = {len(client.discovery_report(value)) for value in ("a", "not listed", "")}
assert len(pairs) == 1, pairs
heavy = {"apache_beam", "numba", "scipy", "pyarrow", "typer", "rich", "matplotlib", "opendp"} & set(sys.modules)
assert not heavy, heavy
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        built = Path(scratch) / "dist"
        run(sys.executable, "-m", "build", "--outdir", str(built), str(ROOT))
        (sdist,), (wheel,) = built.glob("*.tar.gz"), built.glob("*.whl")
        with tarfile.open(sdist) as archive:
            names = archive.getnames()
        with zipfile.ZipFile(wheel) as archive:
            wheel_names = archive.namelist()
        for name in [*names, *wheel_names]:
            assert not FORBIDDEN.search(name), f"{name} must not be in a distribution"
        for package in PACKAGES:
            assert f"{package.replace('.', '/')}/__init__.py" in wheel_names, f"{package} is missing in the wheel"
        found = {str(path.parent.relative_to(ROOT)).replace("/", ".") for path in source_packages()}
        assert found == set(PACKAGES), f"setup.py lists {sorted(PACKAGES)}, the tree has {sorted(found)}"
        use_client(Path(scratch), wheel)
    print(f"packages: {len(names)} files in the sdist, {len(wheel_names)} in the wheel, client works from it alone")


def source_packages() -> list[Path]:
    tops = ("hushcount", "keys", "shuffler", "analyzer", "aux_server", "pipelines", "experiments", "benchmarks")
    return [path for top in tops for path in (ROOT / top).rglob("__init__.py")]


def use_client(scratch: Path, wheel: Path) -> None:
    """Install the wheel without extras and make reports with it, away from the checkout."""
    home = scratch / "client"
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    dictionary = scratch / "items.txt"
    dictionary.write_text("a\nb\nc\n")
    hushcount = (sys.executable, "-m", "pipelines")
    run(*hushcount, "keys", "new", "--out", str(scratch / "keys"), cwd=ROOT)
    run(
        *(*hushcount, "campaign", "new", "--id", "package", "--mechanism", "ais", "--epsilon", "1"),
        *("--dictionary", str(dictionary), "--keys", str(scratch / "keys"), "--out", str(scratch / "campaign.json")),
        *("--discovery-epsilon", "1"),
        cwd=ROOT,
    )
    run(python, "-I", "-W", "error", "-c", CLIENT, str(scratch / "campaign.json"), cwd=scratch)


def run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603  # our own commands
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")


if __name__ == "__main__":
    main()
