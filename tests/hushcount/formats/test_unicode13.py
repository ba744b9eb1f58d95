"""The one spelling of a value: bit-equal by whatever Unicode Python has, and as other languages must have it."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, groupby
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hushcount.formats.unicode13 import VERSION, classes, is_assigned, nfc
from hushcount.items import MOST_ITEM_BYTES, MOST_SPELLED_BYTES, canonical, fault_of_item, may_be_item

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "v1" / "normal_form.json").read_text(encoding="ascii"))
"""Made by Python 3.10 from its own tables, which are those of 13.0, of whole texts."""
EVERY = [chr(code) for code in range(0x110000)]
LETTERS = st.sampled_from(sorted({letter for value, _ in VECTORS["drawn"] for letter in value}))
texts = st.text(st.characters() | LETTERS | st.sampled_from("\ud800\u1ac1\U000113c2\U0001fae0\ufdd0"), max_size=12)


@lru_cache(maxsize=1)
def assigned() -> list[str]:
    return [letter for letter in EVERY if is_assigned(letter)]


def in_bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def test_what_13_0_does_not_assign() -> None:
    """The table, over all code points: equal where Python has 13.0, and a later one has more."""
    known = {letter for letter in EVERY if unicodedata.category(letter) != "Cn"}
    assert len(assigned()) == 283_440
    assert known == set(assigned()) if unicodedata.unidata_version == "13.0.0" else known > set(assigned())


def test_what_joins_is_a_virama_by_its_combining_class() -> None:
    virama = re.compile(f"[{classes()['Virama']}]")
    assert [letter for letter in assigned() if virama.match(letter)] == [
        letter for letter in assigned() if unicodedata.combining(letter) == 9
    ]


def test_every_code_point_has_the_form_that_13_0_gives_it() -> None:
    hashed = hashlib.blake2b(digest_size=32)
    for letter in EVERY:
        if not "\ud800" <= letter <= "\udfff":
            hashed.update(f"{canonical(letter)}\n".encode())
    assert hashed.hexdigest() == VECTORS["every_code_point"]["digest"]


def test_the_vectors_are_of_the_version_that_a_campaign_names() -> None:
    assert VECTORS["unicode"] == VERSION


def test_a_value_and_its_one_spelling(subtests: pytest.Subtests) -> None:
    for vector in VECTORS["values"]:
        with subtests.test(about=vector["about"]):
            assert canonical(vector["value"]) == vector["canonical"]
            assert may_be_item(vector["canonical"]) is vector["item"]
            assert not may_be_item(vector["value"]) or vector["value"] == vector["canonical"]


def test_drawn_texts_have_the_form_that_13_0_gives_them() -> None:
    assert [[value, canonical(value)] for value, _ in VECTORS["drawn"]] == VECTORS["drawn"]
    later = [value for value, form in VECTORS["drawn"] if unicodedata.normalize("NFC", value) != form]
    assert bool(later) is (unicodedata.unidata_version != "13.0.0")


@pytest.mark.long
def test_what_no_item_holds_is_the_same_on_every_python() -> None:
    unfit = [ord(letter) for letter in EVERY if not may_be_item(canonical(f"a{letter}b"))]
    runs = [[code for _, code in run] for _, run in groupby(enumerate(unfit), lambda pair: pair[1] - pair[0])]
    assert [f"{run[0]:04X}..{run[-1]:04X}" for run in runs] == VECTORS["unfit"]["ranges"]


@given(texts)
@example("\ud800e\u0301\udfff")
def test_the_form_of_a_form_is_itself(value: str) -> None:
    form = canonical(value)
    assert canonical(form) == form
    assert in_bytes(form) <= 3 * in_bytes(value)
    assert in_bytes(value) <= 3.5 * in_bytes(form)


@given(texts)
def test_a_text_of_13_0_has_the_form_that_every_later_version_gives_it(value: str) -> None:
    """And, the shortcut for what is normalised: a text that Python's own version leaves alone is left alone."""
    if all(map(is_assigned, value)):
        assert nfc(value) == unicodedata.normalize("NFC", value)
    if unicodedata.is_normalized("NFC", value):
        assert "".join(unicodedata.normalize("NFC", part) for part in parts(value)) == value


def parts(value: str) -> Iterator[str]:
    return ("".join(run) for _, run in groupby(value, is_assigned))


@given(texts, texts)
def test_what_stands_behind_a_newer_character_does_not_reach_over_it(before: str, after: str) -> None:
    newer = "\U0001fae0"
    assert nfc(before + newer + after) == nfc(before) + newer + nfc(after)


@pytest.mark.long
def test_how_many_bytes_a_form_has() -> None:
    """A value grows to three times its bytes at most; what is too long to be spelled is too long to be an item."""
    made = [(letter, unicodedata.normalize("NFD", letter)) for letter in assigned()]
    assert max(in_bytes(nfc(letter)) / in_bytes(letter) for letter, apart in made if letter != apart) == 3.0
    longest: dict[tuple[str, ...], int] = {}
    for letter, apart in made:
        key = tuple(sorted(apart))
        longest[key] = max(longest.get(key, 0), in_bytes(letter))
    whole = [(letter, tuple(sorted(apart))) for letter, apart in made if nfc(letter) == letter]
    more = [(letter, apart) for letter, apart in whole if apart != (letter,) or longest[apart] > in_bytes(letter)]
    ratios = {letter: spelled(apart, longest) / in_bytes(letter) for letter, apart in more}
    assert max(ratios.values()) == ratios["\u0390"] == 3.5 < MOST_SPELLED_BYTES / MOST_ITEM_BYTES


def spelled(apart: tuple[str, ...], longest: dict[tuple[str, ...], int]) -> int:
    """Return the most bytes that a text of these characters, taken apart, can have, whichever of them stand as one."""
    if not apart:
        return 0
    most = 0
    for size in range(len(apart)):
        for others in combinations(range(1, len(apart)), size):
            together = (apart[0], *(apart[place] for place in others))
            if together in longest:
                rest = tuple(one for place, one in enumerate(apart) if place and place not in others)
                most = max(most, longest[together] + spelled(rest, longest))
    return most


def test_a_value_is_measured_in_its_one_spelling() -> None:
    decomposed = "e\u0301" * (MOST_ITEM_BYTES // 2)
    assert in_bytes(decomposed) > MOST_ITEM_BYTES
    assert may_be_item(canonical(decomposed))
    assert "4,096" in str(fault_of_item(canonical(f"{decomposed}x")))


def test_a_value_that_is_too_long_is_not_sorted() -> None:
    """Sorting marks takes the square of their number: 0.1 seconds of 8,000, and three minutes of 400,000."""
    long = "a" + "\u0301" * 200_000 + "\u0316" * 200_000
    assert canonical(long) == long
    assert "4,096" in str(fault_of_item(long))
