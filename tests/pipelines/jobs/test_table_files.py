"""Tables are written whole, and over nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hushcount.errors import UsageError
from pipelines.jobs.table_files import put_table


def test_a_file_that_appeared_meanwhile_is_left_as_it_is(tmp_path: Path) -> None:
    """Another program takes the name after the check that it is free."""
    out = tmp_path / "out.csv"
    out.write_text("mine\n")
    with pytest.raises(UsageError, match=r"out\.csv was taken"):
        put_table(str(out), pa.table({"item": ["a"]}))
    assert out.read_text() == "mine\n"
    assert list(tmp_path.iterdir()) == [out]
