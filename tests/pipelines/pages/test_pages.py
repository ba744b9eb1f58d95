"""Parts of pages: text stays text, data come back as they went in, and the policy names what is there."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import zlib
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from pipelines.pages import assets
from pipelines.pages.figures import Choice, Figure, Guarantee, Panel, Prose, Row, Span, Trend
from pipelines.pages.page import render
from pipelines.pages.series import Series
from pipelines.pages.text import escaped, visible

HOSTILE = (
    "</script><script>alert(1)</script>", "<img src=x onerror='alert(1)'>", "' onclick='alert(1)", '" autofocus="',
    "</td></table>", "--><!--", "&lt;", "a\u202eb", "\u05e9\u05dc\u05d5\u05dd", "x" * 4000, "line\nbreak\x07\x00",
)  # fmt: skip


class Read(HTMLParser):
    """The elements of a page, and its scripts that run."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def page_with(names: tuple[str, ...]) -> str:
    """Return a page with each kind of block, whose names are these."""
    rows = tuple(Row(name, (name,), Span(1.0, 0.0, 2.0, path=name)) for name in names)
    figure = Figure("f", names[0], (names[0],), "intervals", ("item", names[0]), rows, drills=True)
    grid = np.ones((len(names), 1))
    series = Series(names, (names[0],), ((0, 86400),), (10,), grid, grid - 1.0, grid + 1.0, grid > 0.0, (0,))
    blocks = (
        Trend("t", names[0], (), {"window": series}),
        figure,
        Prose("p", names[0], (), names),
        Choice("c", names[0], (figure,)),
    )
    stated = Guarantee("person", names[0], names, names)
    return render(names[0], names, [Panel("a", names[0], stated, blocks), Panel("b", "b", None)], names[0])


def test_names_of_strangers_are_text_wherever_they_stand() -> None:
    plain = Read(page_with(tuple(f"name{place}" for place in range(len(HOSTILE)))))
    hostile = Read(page_with(HOSTILE))
    assert hostile.tags == plain.tags
    assert [name for name, _ in hostile.attributes] == [name for name, _ in plain.attributes]
    assert not {name for name, _ in hostile.attributes} & {"onclick", "onerror", "autofocus", "style"}
    text = page_with(HOSTILE)
    assert not set("\u202e\x07\x00") & set(text)


def test_what_would_turn_or_break_a_line_is_a_code() -> None:
    for text, expected in [
        ("a\u202eb", "a\\u202eb"),
        ("a\tb\n", "a\\tb\\n"),
        ("\u05e9\u200d", "\u05e9\u200d"),
        ("\u00e9 <", "\u00e9 <"),
    ]:
        assert visible(text) == expected
        assert escaped("<'\"&") == "&lt;&#x27;&quot;&amp;"


def unpacked(packed: bytes) -> tuple[dict[str, list[float]], list[np.ndarray]]:
    """Return the head, the three planes of numbers, and the bits, as static/data.js does."""
    block = zlib.decompress(packed)
    (length,) = struct.unpack_from("<I", block)
    head, shape = json.loads(block[4 : 4 + length]), (-1, 4)
    cells = len(head["items"]) * len(head["windows"])
    planes = np.frombuffer(block, np.uint8, 12 * cells, offset=4 + length).reshape(3, 4, cells)
    folded = [np.ascontiguousarray(plane.T).reshape(shape).view("<u4").reshape(-1).astype(np.int64) for plane in planes]
    bits = np.unpackbits(np.frombuffer(block, np.uint8, offset=4 + length + 12 * cells), bitorder="little")
    return head, [*((plane >> 1) ^ -(plane & 1) for plane in folded), bits[:cells]]


def test_packed_counts_are_exact_to_a_hundredth_of_their_error() -> None:
    rng = np.random.default_rng(7)
    error = np.array([3.0, 400.0, 50_000.0])
    count = rng.normal(0.0, 1.0, (50, 3)) * 20.0 * error
    low, high = count - 1.96 * error, count + 2.5 * error
    count[7, 1] = np.nan
    count[:, 2] = low[:, 2] = high[:, 2] = np.nan
    found, times = count > error, ((0, 60), (60, 120), (180, 240))
    series = Series(tuple(map(str, range(50))), ("a", "b", "c"), times, (1, 2, 3), count, low, high, found)
    head, (counts, below, above, bits) = unpacked(series.packed())
    assert np.array_equal(bits.reshape(50, 3), found)
    assert head["times"] == [[*one] for one in times]
    steps = np.array(head["steps"])
    got = counts.reshape(50, 3) * steps
    there = np.isfinite(count)
    assert np.abs(got - count)[there].max(initial=0.0) <= 0.02 * error.max()
    for place in (0, 1):
        rows = there[:, place]
        assert np.abs(got - count)[rows, place].max() <= 0.02 * error[place]
        for plane, end in ((below, count - low), (above, high - count)):
            ends = plane.reshape(50, 3)[rows, place] * steps[place]
            assert np.abs(ends - end[rows, place]).max() <= 0.02 * error[place]
    assert set(counts.reshape(50, 3)[~there]) == {-(2**31)}


def test_noise_of_ten_thousand_items_takes_about_a_byte_each() -> None:
    rng = np.random.default_rng(8)
    count = rng.normal(0.0, 300.0, (10_000, 10))
    items = tuple(f"feature-{number}" for number in range(10_000))
    names, times, found = tuple("abcdefghij"), ((0, 60),) * 10, count > 1500.0
    packed = Series(items, names, times, (10**6,) * 10, count, count - 588.0, count + 588.0, found).packed()
    assert len(packed) < 1.7 * count.size + 10 * len(items)


def test_the_policy_lets_run_what_is_on_the_page_and_nothing_else() -> None:
    page = page_with(("a", "b"))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    for tag, pattern in (("style", "<style>(.*?)</style>"), ("script", "<script type='module'>(.*?)</script>")):
        (content,) = re.findall(pattern, page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    # The one address that a script gives to a picture is of data.
    page = page.replace("image.src = `data:image/svg+xml,", "").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|src\s*=|@import|url\(", page)


def test_every_file_of_scripts_is_on_the_page_after_what_it_imports() -> None:
    folder = Path(assets.__file__).with_name("static")
    assert {path.stem for path in folder.glob("*.js")} == set(assets.SCRIPTS)
    for place, name in enumerate(assets.SCRIPTS):
        imported = re.findall(r'from "\./([a-z]+)\.js"', (folder / f"{name}.js").read_text())
        assert set(imported) <= set(assets.SCRIPTS[:place]), name
    assert not re.search(r"^(import|export) ", assets.script(), re.MULTILINE)


def test_all_numbers_of_a_chart_are_in_its_table() -> None:
    row = Row("a", ("1",), Span(1.25, 0.5, 2.0, -1.0, 3.0, strong=True))
    figure = Figure("f", "Name", (), "intervals", ("item", "n"), (row, Row("b", ("2",), Span(-2.0, strong=False))))
    stated = Guarantee("person", "One line.", ("Sentence one.", "Sentence two."), ())
    page = render("p", (), [Panel("a", "", stated, (figure,))], "")
    assert "<tr data-value='1.25' data-low='0.5' data-high='2' data-low-all='-1' data-high-all='3'" in page
    assert "<tr data-value='-2' data-path='' data-parent=''>" in page
    # The guarantee is stated once.
    for sentence in ("One line.", "Sentence one.", "Sentence two."):
        assert page.count(sentence) == 1


def test_a_figure_without_a_finding_has_its_table_and_no_chart() -> None:
    unseen = Row("a", ("1",), Span(1.25, 0.5, 2.0, strong=False))
    named = Row("a", ("1",), Span(1.25, 0.5, 2.0, strong=False, named=True))
    for row, charts in ((unseen, 0), (named, 1)):
        figure = Figure("f", "Name", (), "intervals", ("item", "n"), (row,))
        read = Read(render("p", (), [Panel("a", "", None, (figure,))], ""))
        assert (read.tags.count("figure"), read.tags.count("table")) == (charts, 1)
