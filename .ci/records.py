"""Which suites need not run again: a digest of all that each tests, and the day on which CI was green with it.

The records are one file in a folder that CI keeps from run to run. Without it, and a week after, everything runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

WEEK = 7 * 86_400.0


@dataclass(frozen=True)
class Suite:
    """What a suite tests, as the beginnings of paths: of all tracked files `of`, without `but`, and `also` these."""

    of: tuple[str, ...]
    but: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    def has(self, path: str) -> bool:
        """Return whether a change of this file may change what the suite says."""
        return path.startswith(self.also) or (path.startswith(self.of) and not path.startswith(self.but))


_PRODUCT = {"of": ("",), "but": ("clients/rust/", "docs/", "examples/", "tests/", "README.md", "CHANGELOG.md")}
_LOCKS = ("requirements.lock", "requirements-dev.lock")
_PROJECTS = ("pyproject.toml", "hushcount/pyproject.toml", "sealed_lanes/pyproject.toml")
_PACKAGING = ("setup.py", *_PROJECTS, "MANIFEST.in", "requirements.lock")
_SHARED = ("tests/conftest.py", "tests/support/", "tests/containers/", "tests/engines/", "tests/deploy/")
SUITES = {
    "bindings": Suite(
        **_PRODUCT,
        also=(
            *_SHARED[:2],
            "clients/rust/",
            "examples/web/",
            "tests/browser/",
            "tests/evaluator/",
            "tests/native/",
            "tests/shuffler/",
        ),
    ),
    "bundlers": Suite(
        **_PRODUCT,
        also=(
            *("tests/conftest.py", "tests/support/", "tests/hushcount/", "tests/issuer/", "tests/shuffler/"),
            "tests/vectors/",
        ),
    ),
    "containers": Suite(
        **_PRODUCT,
        also=(*_SHARED, "tests/browser/", "tests/evaluator/", "tests/faults/", "tests/shuffler/", "examples/web/"),
    ),
    "engines": Suite(**_PRODUCT, also=_SHARED),
    "environments": Suite(of=(*_PACKAGING, "tests/package/")),
    "release": Suite(
        of=(
            *_PACKAGING,
            ".ci/",
            "CHANGELOG.md",
            "requirements-release.lock",
            "hushcount/__init__.py",
            "clients/typescript/package",
            "clients/typescript/scripts/",
            "clients/typescript/tsconfig",
        )
    ),
    "rust": Suite(
        of=("clients/rust/", "hushcount/", "tests/hushcount/oracles/", "tests/vectors/", "vectors/", *_LOCKS)
    ),
    "lanes": Suite(of=("sealed_lanes/", "tests/sealed_lanes/", "vectors/v1/wycheproof", *_LOCKS)),
}
"""tests/test_ci.py holds that each has all that its tests import."""


def unchanged(root: Path, cache: Path) -> dict[str, str]:
    """Return the suites that were green within a week with what they test now, and the day of each."""
    if not _is_committed(root):
        return {}
    try:
        kept = json.loads((cache / "green.json").read_text("utf-8"))
        found = {name: (kept[name]["digest"], float(kept[name]["at"])) for name in SUITES if name in kept}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
    now = time.time()
    return {
        name: time.strftime("%Y-%m-%d", time.gmtime(at))
        for name, (digest, at) in found.items()
        if digest == digest_of(root, SUITES[name]) and now - WEEK < at <= now
    }


def write(root: Path, cache: Path, green: Iterable[str], still: Iterable[str]) -> None:
    """Write which suites were green in a run that was green in all, and keep the day of those that did not run."""
    if not _is_committed(root):
        return
    path, now = cache / "green.json", time.time()
    kept = json.loads(path.read_text("utf-8")) if path.exists() and set(still) else {}
    made = {name: kept[name] for name in still}
    made |= {name: {"digest": digest_of(root, SUITES[name]), "at": now} for name in green if name in SUITES}
    cache.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".new").write_text(json.dumps(made, indent=1), "utf-8")
    os.replace(path.with_suffix(".new"), path)


def digest_of(root: Path, suite: Suite) -> str:
    """Return a digest of the tracked files that a suite tests, and of this kind of machine."""
    files = [line for line in _git(root, "ls-files", "-s", "-z").split("\0") if suite.has(line.partition("\t")[2])]
    return hashlib.sha256(repr((platform.platform(), platform.python_version(), files)).encode()).hexdigest()


def _is_committed(root: Path) -> bool:
    """Return whether the files are those that git has."""
    return not _git(root, "status", "--porcelain", "--untracked-files=no")


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout  # noqa: S603, S607
