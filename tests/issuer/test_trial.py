"""The trial of docs/operators.md: who has an account reports, and the report of who has none waits."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.issuer.running import authorization
from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]


def trial(folder: Path, **ports: int) -> subprocess.CompletedProcess[str]:
    """Run the operator's own line."""
    path = f"{Path(sys.executable).parent}:{os.defpath}"
    return subprocess.run(  # noqa: S603
        ["sh", "examples/passes/try.sh", folder],  # noqa: S607
        cwd=ROOT,
        env={"PATH": path, "PYTHONPATH": str(ROOT), **{name: str(port) for name, port in ports.items()}},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_two_accounts_report_and_a_stranger_waits(tmp_path: Path) -> None:
    ran = trial(tmp_path / "trial", PORT=free_port(), ISSUER_PORT=free_port())
    assert ran.returncode == 0, ran.stderr
    said = dict(re.findall(r"^(ann|bob|eve):\n((?: .*\n)+)", ran.stdout, re.MULTILINE))
    sent = {name: re.findall(r"(?:sent|waiting) +(\d)", text) for name, text in said.items()}
    assert sent == {"ann": ["1", "0"], "bob": ["1", "0"], "eve": ["0", "1"]}
    assert "not_entitled" in said["eve"]


@pytest.mark.parametrize("taken", ["PORT", "ISSUER_PORT"])
def test_a_server_that_does_not_start_ends_the_trial(tmp_path: Path, taken: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ran = trial(tmp_path / "trial", **{"PORT": free_port(), "ISSUER_PORT": free_port(), taken: port})
    assert ran.returncode == 1
    assert str(port) in ran.stderr
    assert "ann" not in ran.stdout


def test_the_page_shows_how_a_header_begins() -> None:
    begins = authorization("ann", "0123456789abcdef")[:27]
    assert f"`{begins}`" in (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
