"""What may be an item comes back from every file as it was written; what may not is refused without being repeated."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hushcount.campaigns.dictionary import Dictionary, read_dictionary
from hushcount.discovery.pairs import MAX_VALUE_BYTES
from hushcount.errors import FormatError, UsageError
from hushcount.formats.lines import is_utf8
from hushcount.items import MOST_ITEM_BYTES, canonical, fault_of_item, may_be_item
from hushcount.oracles.catalogue import build
from pipelines.epochs.tracked_items import TrackedItem, TrackedItems, read_tracked, write_tracked
from pipelines.files.csv_cells import csv_rows
from pipelines.files.item_files import read_names
from pipelines.jobs import results
from pipelines.jobs.found import read_found_items, write_found
from pipelines.jobs.table_files import TABLES, csv_bytes

AWKWARD = "\ufeff\u2028\u2029\x85\x1c\0\r\n\t\"',;= \\\u202e\u200b\u200f\ud800\U0001f600aé"
strings = st.text(st.characters() | st.sampled_from(AWKWARD), max_size=12) | st.text(AWKWARD, max_size=12)


def lines_of(name: str) -> list[str]:
    path = Path(__file__).parents[1] / "lists" / f"{name}.txt.gz"
    return gzip.decompress(path.read_bytes()).decode().splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("items")


@given(values=st.lists(strings, min_size=1, max_size=5, unique=True))
@example(values=["\ufeffx", '"', " ", "a,b", "\u200b", "=1+1", "x" * MOST_ITEM_BYTES])
@settings(deadline=None, max_examples=150)
def test_what_may_be_an_item_comes_back_from_every_file(folder: Path, values: list[str]) -> None:
    items = list(dict.fromkeys(form for value in values if may_be_item(form := canonical(value))))
    if not items:
        return
    for name, opener in (("words.txt", open), ("words.txt.gz", gzip.open)):
        with opener(folder / name, "wb") as stream:
            stream.write("".join(f"{item}\n" for item in items).encode())
        assert read_dictionary(folder / name).items == tuple(items)
    write_found([(item, None) for item in items], str(folder))
    assert read_found_items(str(folder / "found.csv")) == sorted(items)
    assert read_names(folder / "found.csv") == sorted(items)
    table = pa.table({"item": items, "count": [1.0] * len(items)})
    assert pq.read_table(io.BytesIO(TABLES[".parquet"](table)))["item"].to_pylist() == items
    rows = csv_rows(csv_bytes(table), "x", ("item", "count"))
    assert [row["item"] for row in rows] == items
    tracked = TrackedItems(items=tuple(TrackedItem(item=item, source="given") for item in items))
    write_tracked(folder / "items.json", tracked)
    assert read_tracked(folder / "items.json", ()) == tracked


def test_a_dictionary_is_refused_with_all_its_lines_that_are_no_items(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(b"a\n\x01\na\n\xff\nb\n")
    with pytest.raises(UsageError, match=r"words\.txt .*line 2 .*; line 3 is line 1 again.*; line 4 is not UTF-8:"):
        read_dictionary(path)
    path.write_bytes(b"a\n" + b"b\x01\n" * 25)
    with pytest.raises(UsageError) as caught:
        read_dictionary(path)
    assert [f"line {line} " in str(caught.value) for line in (1, 2, 21, 22)] == [False, True, True, False]
    assert "5 more" in str(caught.value)


def test_what_an_analyst_names_and_no_dictionary_has_is_named_at_once() -> None:
    names = [f"absent {number}" for number in range(25)]
    with pytest.raises(UsageError) as caught:
        results.wanted_items(build("grr", 1.0, 3, {}), Dictionary(("one", "two")), ["one", *names])
    assert ["'absent 19' (line 21)" in str(caught.value), "absent 20" in str(caught.value)] == [True, False]
    assert "5 more" in str(caught.value)


@given(value=strings)
def test_what_may_be_no_item_is_refused_everywhere_and_not_repeated(value: str) -> None:
    form = canonical(value)
    fault = fault_of_item(form)
    if fault is None:
        assert Dictionary((value,)).items == (form,)
    else:
        with pytest.raises(UsageError) as caught:
            Dictionary(("first", value))
        said = fault if is_utf8(form) else "is not UTF-8"
        assert str(caught.value) == f"the list of items has unfit lines, line 2 {said}: remove or correct them"
    if (fault := fault_of_item(value)) is not None:
        with pytest.raises(ValueError, match=fault):
            TrackedItem(item=value, source="given")


def test_why_a_string_may_be_no_item(subtests: pytest.Subtests) -> None:
    for value, says in [
        ("", "empty"),
        ("cafe\u0301", "NFC"),
        ("a\nb", "control character"),
        ("a\u2028", "separator"),
        ("\u202egpj", "direction"),
        ("\ud800", "surrogate"),
        ("\ufeffa", "byte order mark"),
        ("pay\u200bpal", "invisible"),
        ("pay\u200dpal", "invisible"),
        ("\u200d\u0645", "invisible"),
        ("a\u00adb", "invisible"),
        ("a\u200f", "invisible"),
        ("a\ufeffb", "invisible"),
        ("\U000e0061", "invisible"),
        ("\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067", "invisible"),
        ("\U0001f3f4\U000e0068\U000e0069\U000e007f", "invisible"),
        ("\U000e0000", "invisible"),
        ("a\ufe0f", "invisible"),
        ("é\ufe0f", "invisible"),
        ("1\ufe0f", "invisible"),
        ("é\U000e0101", "invisible"),
        ("\u2764\ufe0f\ufe0f", "invisible"),
        ("\u845b\U000e0100\U000e0101", "invisible"),
        ("é" + "\u200c\u200d" * 8 + "é", "invisible"),
        ("é\u200c", "invisible"),
        ("\u0cb8\u0ccd\u200c\u200c", "invisible"),
        ("\u3164", "invisible"),
        ("a\u034fb", "invisible"),
        ("x" * (MOST_ITEM_BYTES + 1), "4,096"),
        ("é" * (MOST_ITEM_BYTES // 2 + 1), "4,096"),
    ]:
        with subtests.test(value=value[:40]):
            assert says in str(fault_of_item(value))


def test_every_emoji_may_be_an_item() -> None:
    emoji = lines_of("emoji")
    assert len(emoji) == 5_244
    assert [ascii(value) for value in emoji if not may_be_item(canonical(value))] == []


def test_every_word_of_a_real_list_may_be_an_item_but_those_with_a_space_of_no_width() -> None:
    """Khmer and Lao write one between words, which nobody sees; one Malayalam name ends with a joiner of nothing."""
    words = lines_of("words")
    unfit = {value for value in words if not may_be_item(canonical(value))}
    unseen = {value for value in words if "\u200b" in value}
    assert (len(words), len(unseen)) == (8_392, 49)
    assert unfit == {*unseen, "\u0d0e\u0d38\u0d4d\u0d31\u0d4d\u0d31\u0d4b\u0d23\u0d3f\u0d2f\u200d"}


def test_every_value_that_can_be_discovered_is_short_enough_for_an_item() -> None:
    assert MAX_VALUE_BYTES <= MOST_ITEM_BYTES
    assert may_be_item("x" * MAX_VALUE_BYTES)


def test_two_items_alike_are_named_by_their_lines_alone() -> None:
    with pytest.raises(UsageError, match=r"line 4 is line 2 again, in NFC"):
        Dictionary(("a", "b", "c", "b"))


@pytest.mark.parametrize("ending", [".txt", ".txt.gz"])
def test_two_spellings_of_an_item_are_one_item(tmp_path: Path, ending: str) -> None:
    opener = gzip.open if ending == ".txt.gz" else open
    for name, lines in (
        ("nfc", ["caf\u00e9", "tea"]),
        ("nfd", ["cafe\u0301", "tea"]),
        ("both", ["cafe\u0301", "caf\u00e9"]),
    ):
        with opener(tmp_path / f"{name}{ending}", "wb") as stream:
            stream.write("".join(f"{line}\n" for line in lines).encode())
    assert read_dictionary(tmp_path / f"nfd{ending}") == read_dictionary(tmp_path / f"nfc{ending}")
    assert read_dictionary(tmp_path / f"nfd{ending}").digest == read_dictionary(tmp_path / f"nfc{ending}").digest
    assert read_names(tmp_path / f"nfd{ending}")[0] == "caf\u00e9"
    with pytest.raises(UsageError, match=r"both\.txt.* line 2 is line 1 again, in NFC"):
        read_dictionary(tmp_path / f"both{ending}")
    with pytest.raises(UsageError, match=r"line 2 is line 1 again, in NFC"):
        results.wanted_items(build("grr", 1.0, 3, {}), None, read_names(tmp_path / f"both{ending}"))


def test_what_an_analyst_asks_for_has_one_spelling_in_a_table_too(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item\ncafe\u0301\n", encoding="utf-8")
    wanted = results.wanted_items(
        build("grr", 1.0, 3, {}), Dictionary(("tea", "caf\u00e9")), read_names(tmp_path / "items.csv")
    )
    assert wanted is not None
    assert (wanted.names, wanted.items.tolist()) == (("caf\u00e9",), [1])


def test_no_table_of_found_values_holds_another_spelling(tmp_path: Path) -> None:
    (tmp_path / "found.csv").write_text("item\ncafe\u0301\n", encoding="utf-8")
    with pytest.raises(FormatError, match="repeated or invalid item: restore the file"):
        read_found_items(str(tmp_path / "found.csv"))


def test_a_packed_dictionary_is_read_under_any_name(tmp_path: Path) -> None:
    known = Dictionary(("alpha", "größe"))
    for name in ("words.txt", "words.txt.gz"):
        (tmp_path / name).write_bytes(known.packed())
        assert read_dictionary(tmp_path / name) == known
        (tmp_path / name).write_bytes(known.packed()[:-3])
        with pytest.raises(UsageError, match="damaged"):
            read_dictionary(tmp_path / name)
