"""Files of items: one a line, or the column item of a .csv; a table in a plain file is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import read_dictionary
from hushcount.errors import UsageError
from pipelines.files.item_files import read_listed, read_names, table_note
from tests.support.jobs import cli, done, new_keys, write_lines

TABLE = ["count,item", "3,alpha", '5,"beta, with a comma"', "7,caf\u00e9"]
ITEMS = ("alpha", "beta, with a comma", "caf\u00e9")


def test_the_column_item_of_a_csv_is_the_dictionary(tmp_path: Path) -> None:
    table = write_lines(tmp_path / "items.csv", TABLE)
    assert read_listed(table).items == ITEMS
    assert read_names(table) == list(ITEMS)
    done("init", tmp_path / "usage", "--dictionary", table)
    keys, path = new_keys(tmp_path / "keys"), tmp_path / "new" / "c.json"
    path.parent.mkdir()
    where = ("--dictionary", table, "--keys", keys, "--id", "c", "--out", path)
    done("campaign", "new", *where, "--mechanism", "grr", "--epsilon", 1)
    planned = done("plan", "--epsilon", 1, "--reports", 9, "--dictionary", table, "--mechanism", "grr", "--json").json
    assert planned["chosen"]["q"] < planned["chosen"]["p"]
    for home in (tmp_path / "usage" / "campaign.json", path):
        listed = Campaign.read(home).read_dictionary()
        assert listed is not None
        assert set(listed.items) == set(ITEMS)


def test_a_csv_without_the_column_or_with_a_wrong_item_is_refused_with_the_cure(tmp_path: Path) -> None:
    table = write_lines(tmp_path / "items.csv", ["a,3", "b,5"])
    for command in (
        ("init", tmp_path / "usage", "--dictionary", table),
        ("plan", "--epsilon", 1, "--reports", 9, "--dictionary", table),
    ):
        run = cli(*command)
        assert run.status == 2
        assert all(said in run.err for said in ("items.csv", "column 'item'", ".txt"))
    assert not (tmp_path / "usage").exists()
    with pytest.raises(UsageError, match=r"line 3 is line 1 again"):
        read_listed(write_lines(tmp_path / "twice.csv", ["item", "a", "b", "a"]))
    with pytest.raises(UsageError, match=r"line 2 is empty"):
        read_listed(write_lines(tmp_path / "empty.csv", ["item,count", "a,1", ",2"]))


def test_a_table_in_a_plain_file_is_said_and_used_as_it_is(tmp_path: Path) -> None:
    table = write_lines(tmp_path / "items.txt", ["a,3", "b,5"])
    made = done("init", tmp_path / "usage", "--dictionary", table)
    keys = new_keys(tmp_path / "keys")
    where = ("--dictionary", table, "--keys", keys, "--id", "c", "--out", tmp_path / "c.json")
    new = done("campaign", "new", *where, "--mechanism", "grr", "--epsilon", 1)
    planned = done("plan", "--epsilon", 1, "--reports", 9, "--dictionary", table)
    for run in (made, new, planned):
        assert all(said in run.err for said in ("warning: ", str(table), "column item", ".csv"))
    listed = Campaign.read(tmp_path / "usage" / "campaign.json").read_dictionary()
    assert listed is not None
    assert set(listed.items) == {"a,3", "b,5"}


@pytest.mark.parametrize(
    ("lines", "is_table"),
    [
        (["a,3", "b,5"], True),
        (["a;3", "b;5"], True),
        (["a,3,x", "b,5,y"], True),
        (["a,3"], False),
        (["a,3", "b"], False),
        (["a,3", "b,5,7"], False),
        (["Paris, France", "Rome, Italy"], False),
        (["a", "b"], False),
    ],
)  # fmt: skip
def test_only_lines_of_one_shape_look_like_a_table(tmp_path: Path, lines: list[str], is_table: bool) -> None:
    path = write_lines(tmp_path / "items.txt", lines)
    assert (table_note(path, read_dictionary(path)) is not None) == is_table
