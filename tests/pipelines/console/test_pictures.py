"""Commands that draw say which extra is missing, before they work for an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.console import pictures
from tests.support.jobs import refused


def test_without_matplotlib_nothing_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for command in [
        ("ask", "item", "--config", "deployment.toml", "--campaign", "words", "--plot", "words.png"),
        ("reproduce", "p26-table", "--out", "reproduced"),
        ("bench", "--growth", "--out", "measured"),
    ]:
        with subtests.test(command=command):
            monkeypatch.chdir(tmp_path)
            monkeypatch.setattr(pictures, "find_spec", lambda name: None)
            refused(*command, says=["matplotlib is missing", "pip install 'hushcount-server[plots]'"])
            assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
