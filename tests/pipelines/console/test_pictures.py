"""An option that draws says which extra is missing, before it works."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.console import pictures
from tests.support.jobs import refused


def test_without_matplotlib_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    ask = ("ask", "item", "--config", "deployment.toml", "--campaign", "words", "--plot", "words.png")
    refused(*ask, says=["needs matplotlib", "pip install matplotlib"])
    assert list(tmp_path.iterdir()) == []
