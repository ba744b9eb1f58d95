"""What the Makefile says while it works."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_an_installation_says_first_what_it_installs_and_how_long_that_takes(tmp_path: Path) -> None:
    """`--dry-run` prints the recipe; the lines of `echo` are run as make would run them."""
    making = ["make", "--dry-run", f"VENV={tmp_path}", f"{tmp_path}/dev"]
    recipe = subprocess.run(making, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()  # noqa: S603
    for lock in ("requirements.lock", "requirements-dev.lock"):
        (says,) = [line for line in recipe if line.startswith("echo ") and f" {lock} " in line]
        (installs,) = [line for line in recipe if line.endswith(f"-r {lock}")]
        assert recipe.index(says) < recipe.index(installs)
        said = subprocess.run(says, cwd=ROOT, shell=True, capture_output=True, text=True, check=True).stdout  # noqa: S602
        assert str(tmp_path) in said
        assert "MB" in said
        assert "minutes" in said
