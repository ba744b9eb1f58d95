"""The example of the library's page runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import sealed_lanes
from sealed_lanes import Lanes


def test_the_example_runs(lanes: Lanes) -> None:
    page = Path(sealed_lanes.__file__).with_name("README.md").read_text("utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    exec(example, made := {})  # noqa: S102  # the page's own lines
    assert made["opened"].all()
    assert made["lanes"].open_rows(made["sealed"], made["public_key"], made["secret"])[1].all()
    assert not made["secrets"].any()
