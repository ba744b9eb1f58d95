"""hushcount.results.read: which rows it returns, what it refuses, and that no column changes without a version."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushcount import results
from hushcount.collection.tilings import zone_of
from hushcount.errors import FormatError, UsageError
from hushcount.results import COLUMNS, VERSION, VERSION_KEY, Column, file_name, read, schema

ROOT = Path(__file__).parents[2]
WINDOWS = ("20261121T000000Z", "20261122T000000Z")
FILE = "000001-00112233445566aa"
DIGESTS = {1: "768bd7da413c6f27"}
"""Of the columns of each version. A version that was released stays as it is: add the next one."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for campaign in ("apps", "words"):
        for window in WINDOWS:
            put(tmp_path / file_name(campaign, window, FILE), campaign, window)
    (tmp_path / "campaign=words" / "notes.txt").write_text("of an operator")
    (tmp_path / "campaign=words" / f"window={WINDOWS[0]}" / f".{FILE}.parquet.0f.tmp").write_text("half")
    return tmp_path


def put(path: Path, campaign: str = "words", window: str = WINDOWS[0], version: int = VERSION) -> None:
    values = {"string": "", "bool": False, "int64": 1, "double": 1.0}
    moment = datetime(2026, 11, 21, tzinfo=timezone.utc)
    row = {column.name: values.get(column.type, moment) for column in COLUMNS}
    rows = [{**row, "campaign": campaign, "window": window, "item": item} for item in ("b", "a")]
    table = pa.Table.from_pylist(rows, schema().with_metadata({VERSION_KEY: str(version).encode()}))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def test_rows_are_those_that_are_asked_for_in_the_order_of_windows(store: Path) -> None:
    table = read(store)
    assert table.schema.equals(schema(), check_metadata=True)
    names = [(row["campaign"], row["window"], row["item"]) for row in table.to_pylist()]
    assert names == [(campaign, window, item) for campaign in ("apps", "words") for window in WINDOWS for item in "ba"]
    assert read(str(store), campaign="words").num_rows == 4
    assert read(store, "words", windows=WINDOWS[1:])["window"].to_pylist() == [WINDOWS[1]] * 2
    assert read(store, "words", windows=WINDOWS[0]).num_rows == 2
    for day in ("2026-11-22", "2026-11-22T00:00Z", "20261122T00"):
        assert read(store, "words", windows=[day])["window"].to_pylist() == [WINDOWS[1]] * 2
    # The day of the second window begins an hour later in Berlin; in Auckland it begins on the day before.
    assert read(store, "words", windows=["2026-11-22"], zone="Europe/Berlin")["window"].to_pylist() == [WINDOWS[1]] * 2
    assert (
        read(store, "words", windows=["2026-11-21"], zone="America/New_York")["window"].to_pylist() == [WINDOWS[1]] * 2
    )
    assert read(store, items=["a", "c"])["item"].to_pylist() == ["a"] * 4
    assert read(store, windows=[]).schema.equals(schema())
    assert read(store).to_pandas().shape == (8, len(COLUMNS))


def test_what_is_not_there_is_one_sentence(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="'estimates'"):
        read(tmp_path / "nothing")
    with pytest.raises(UsageError, match=r"campaign is 'no'.*apps, words"):
        read(store, "no")
    for window in ("20261123T000000Z", "2026-11-23", "2026", ""):
        with pytest.raises(UsageError, match=f"window is '{window}'.* 2 windows from {WINDOWS[0]} to {WINDOWS[1]}"):
            read(store, windows=[window])
    with pytest.raises(UsageError, match="zone is 'Mars/Olympus'"):
        read(store, zone="Mars/Olympus")
    monkeypatch.setitem(sys.modules, "tzdata", None)
    zone_of.cache_clear()
    with pytest.raises(UsageError, match="pip install tzdata"):
        read(store, zone="Europe/Berlin")
    with pytest.raises(UsageError, match="nowhere://bucket"):
        read("nowhere://bucket/estimates")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install pyarrow"):
        read(store)


def test_files_of_other_versions_and_damaged_ones_are_told_apart(store: Path) -> None:
    path = store / file_name("words", WINDOWS[0], FILE)
    put(path, version=VERSION + 1)
    with pytest.raises(FormatError, match=f" {VERSION + 1},.* {VERSION}"):
        read(store)
    table = pq.ParquetFile(path).read()
    pq.write_table(table.replace_schema_metadata({}), path)
    with pytest.raises(FormatError, match=r"hushcount\.schema_version"):
        read(store)
    mine = table.replace_schema_metadata({VERSION_KEY: b"1"})
    pq.write_table(mine.drop_columns(["share"]), path)
    with pytest.raises(FormatError, match="column share"):
        read(store)
    # A column that came later is empty in an older file; an unknown one is left out.
    pq.write_table(mine.drop_columns(["combined"]).append_column("more", pa.array([1, 2])), path)
    assert read(store, "words", WINDOWS[0])["combined"].null_count == 2
    path.write_bytes(b"PAR1 damaged")
    with pytest.raises(FormatError, match="cannot read"):
        read(store)


def test_no_column_changes_without_a_version() -> None:
    assert max(DIGESTS) == VERSION
    assert digest(COLUMNS) == DIGESTS[VERSION], "columns changed: raise VERSION, and add its digest and its documents"
    other = (*COLUMNS[:-1], Column("epsilon", "int64"))
    assert digest(other) != DIGESTS[VERSION]


def digest(columns: tuple[Column, ...]) -> str:
    return hashlib.blake2b(repr(columns).encode(), digest_size=8).hexdigest()


def test_the_page_says_every_column_in_order_with_its_type() -> None:
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \| ([\w\[\], =]+) \|", page, re.MULTILINE)
    assert told == [(column.name, column.type) for column in COLUMNS]
    assert f"Version {VERSION}." in page


@pytest.mark.long
def test_importing_it_needs_no_pyarrow() -> None:
    script = "import hushcount.results, sys; assert 'pyarrow' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603  # our own line


def test_the_extra_that_the_sentence_names_is_there() -> None:
    project = (ROOT / "hushcount" / "pyproject.toml").read_text()
    assert re.search(r"^results = \[\"pyarrow", project, re.MULTILINE)
    assert results.FOLDER == "estimates"
