"""The version of a release: hushcount/__init__.py says it, and every other file repeats it.

python .ci/versions.py          print the version; fail if a file has another
python .ci/versions.py 0.2.0    write this version into every file
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = "hushcount/__init__.py"
_NUMBER = r"(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)"
# Each pattern has one group, the version.
PLACES: dict[str, tuple[str, ...]] = {
    SOURCE: (rf'^__version__ = "{_NUMBER}"$',),
    "pyproject.toml": (
        rf'^version = "{_NUMBER}"$',
        rf'"hushcount\[oblivious\]=={_NUMBER}"',
        rf'"sealed-lanes=={_NUMBER}"',
    ),
    "sealed_lanes/pyproject.toml": (rf'^version = "{_NUMBER}"$',),
    "clients/typescript/package.json": (rf'^  "version": "{_NUMBER}",$',),
    "clients/typescript/package-lock.json": (
        rf'\A{{\n  "name": "hushcount",\n  "version": "{_NUMBER}"',
        rf'^    "": {{\n      "name": "hushcount",\n      "version": "{_NUMBER}"',
    ),
    "clients/rust/Cargo.toml": (rf'^version = "{_NUMBER}"$',),
    "clients/rust/Cargo.lock": (rf'^name = "hushcount(?:-\w+)?"\nversion = "{_NUMBER}"$',),
    "CHANGELOG.md": (rf"\A[^#]*# Changelog\n[^#]*\n## {_NUMBER}, ",),
}
# Tags of our images, and names of our wheels, wherever a file of a deployment or its tests has them.
DEPLOYED = (
    rf"hushcount[\w/-]*:{_NUMBER}", rf"hushcount[\w/-]*:\$\{{VERSION:-{_NUMBER}\}}",
    rf"(?:hushcount|sealed_lanes)-{_NUMBER}-py3", rf"newName: \S*hushcount-[\w-]+, newTag: {_NUMBER}",
)  # fmt: skip


def places(root: Path) -> dict[str, tuple[str, ...]]:
    """Return the patterns of each file that has the version; a pattern of PLACES must occur."""
    listing = ["git", "ls-files", "deploy", "tests/containers", "tests/deploy"]
    listed = subprocess.run(listing, cwd=root, capture_output=True, text=True, check=True).stdout  # noqa: S603  # git of PATH
    return PLACES | {name: DEPLOYED for name in listed.split() if (root / name).is_file()}


def version(root: Path) -> str:
    """Return the version that hushcount/__init__.py says."""
    found = re.search(PLACES[SOURCE][0], (root / SOURCE).read_text("utf-8"), re.MULTILINE)
    if found is None:
        sys.exit(f'{SOURCE} has no line __version__ = "1.2.3"')
    return found[1]


def faults(root: Path) -> list[str]:
    """Return a sentence for each place that lacks the version or has another."""
    wanted, found = version(root), []
    for name, patterns in places(root).items():
        text = (root / name).read_text("utf-8")
        for pattern in patterns:
            there = re.findall(pattern, text, re.MULTILINE)
            if not there and name in PLACES:
                found.append(f"{name} has no version where {pattern} looks for it")
            found += [f"{name} has the version {other}, must have {wanted}" for other in there if other != wanted]
    return found


def write(root: Path, new: str) -> None:
    """Write a version into every file."""
    if not re.fullmatch(_NUMBER, new):
        sys.exit(f"version is {new}, must be as 1.2.3 or 1.2.3rc1")
    for name, patterns in places(root).items():
        text = (root / name).read_text("utf-8")
        for pattern in patterns:
            text = re.sub(pattern, lambda hit: hit[0].replace(hit[1], new), text, flags=re.MULTILINE)
        (root / name).write_text(text, "utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        write(ROOT, sys.argv[1])
    if wrong := faults(ROOT):
        sys.exit("\n".join(wrong))
    print(version(ROOT))
