"""The logo of a page is a picture, and nothing else gets into the page."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

import pytest

from hushcount.errors import UsageError
from pipelines.monitoring.dashboard import page_of
from pipelines.pages.logo import MOST_BYTES, read_logo
from pipelines.questions.spans import Span
from tests.support.site import Site, at

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><circle r="1"/></svg>'


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(side: int = 2) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0\0\0" * 2)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("name", "data", "kind"), [("a.png", png(), "png"), ("a.svg", SVG, "svg+xml")])
def test_a_picture_is_a_data_address(tmp_path: Path, name: str, data: bytes, kind: str) -> None:
    (tmp_path / name).write_bytes(data)
    head, _, text = read_logo(tmp_path / name).partition(",")
    assert (head, base64.b64decode(text)) == (f"data:image/{kind};base64", data)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"<html/>", b"GIF89a", png()[:-1], png() + b"<script>", png().replace(b"IDAT", b"IDAX"), png(5000),
        b"\x89PNG\r\n\x1a\n", b"<svg/>", SVG[:-1], b'<!DOCTYPE svg [<!ENTITY a "b">]>' + SVG,
        b"<!DOCTYPE svg>" + SVG,
    ],
)  # fmt: skip
def test_what_is_no_picture_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "logo").write_bytes(data)
    with pytest.raises(UsageError, match="no PNG or SVG picture"):
        read_logo(tmp_path / "logo")


def test_a_large_or_missing_file_is_refused_with_its_name(tmp_path: Path) -> None:
    large = tmp_path / "large.svg"
    large.write_bytes(SVG + b" " * MOST_BYTES)
    with pytest.raises(UsageError, match=r"large\.svg is larger than 64 KiB"):
        read_logo(large)
    with pytest.raises(UsageError, match=r"none\.png cannot be read"):
        read_logo(tmp_path / "none.png")


def test_the_deployment_file_names_the_page(tmp_path: Path) -> None:
    site = Site(tmp_path, tail='[dashboard]\nname = "Shop & more"\nlogo = "logo.svg"\n')
    (tmp_path / "logo.svg").write_bytes(SVG)
    page = page_of(site.deployment, at(0.5), Span(100))
    assert "<title>Shop &amp; more - Hushcount</title>" in page
    assert f"<img class='logo' alt='' src='data:image/svg+xml;base64,{base64.b64encode(SVG).decode()}'>" in page
