"""Commands that draw say which extra is missing, before they work for an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.console import pictures
from tests.support.jobs import refused


@pytest.mark.parametrize(
    "command",
    [
        ("ask", "item", "--config", "deployment.toml", "--campaign", "words", "--plot", "words.png"),
        ("reproduce", "p26-table", "--out", "reproduced"),
        ("bench", "--growth", "--out", "measured"),
    ],
    ids=lambda command: command[0],
)
def test_without_matplotlib_nothing_is_begun(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    refused(*command, says=["matplotlib is missing", "pip install 'hushcount-server[plots]'"])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
