"""Whatever bytes another party wrote: what they say is returned, or one of our errors is raised, and nothing else."""

from __future__ import annotations

import ast
import io
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature
from hushcount.campaigns.log import CampaignLog
from hushcount.campaigns.signatures import Signature
from hushcount.collection.epochs import CollectionFile
from hushcount.collection.manifests import Manifest
from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.formats.reading import (
    DEEPEST,
    parse_json,
    parse_model,
    parse_toml,
    read_file,
    read_mapping,
    take,
    validated,
)
from hushcount.policy import PolicyTerms
from keys.listing import KeyListing
from pipelines.deployment.settings import DeploymentFile
from pipelines.files import storage
from pipelines.files.csv_cells import csv_rows
from pipelines.outputs.received_summary import read_summary

ROOT = Path(__file__).parents[3]
PACKAGES = ("hushcount", "keys", "service", "shuffler", "evaluator", "analyzer", "aux_server", "pipelines")
MODELS = (
    Manifest, Signature, KeyListing, CollectionFile, Campaign, DeploymentFile, PolicyTerms, CampaignLog,
    CampaignSignature,
)  # fmt: skip
NAMES = ("format", "hop", "streams", "reports", "epochs", "keys", "segments", "upstream", "shuffle", "dictionary", "x")
HOSTILE_JSON = {
    "depth of lists": b"[" * 200_000,
    "depth of objects": b'{"a":' * 200_000,
    "depth behind a string": b'["]]\\"]", ' + b"[" * 5_000,
    "a number of 100,000 digits": b"1" * 100_000,
    "a float that is none": b"1e999",
    "NaN": b"[NaN]",
    "a lone surrogate": b'"\\ud800"',
    "a key twice": b'{"a": 1, "\\u0061": 2}',
    "no UTF-8": b'"\xff"',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "nothing": b"",
    "a string without end": b'"' + b"\\n" * 100_000,
}
HOSTILE_TOML = {
    "depth of lists": b"a=" + b"[" * 100_000,
    "a string without end": b'a="' + b'\\"' * 100_000,
    "many strings without end": b'"""' * 80_000,
    "a number of 5,000 digits": b"a=" + b"9" * 5_000,
    "no UTF-8": b"a='\xff'",
}
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(NAMES),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(), inner, max_size=5),
    max_leaves=30,
)
documents = st.binary(max_size=200) | st.text("[]{}\"'\\,:=.#a1\n ", max_size=300).map(str.encode) | values.map(
    lambda value: json.dumps(value).encode()
)  # fmt: skip


def test_json_that_would_hang_fill_or_end_a_program_is_one_error(subtests: pytest.Subtests) -> None:
    for name, text in HOSTILE_JSON.items():
        with subtests.test(name=name):
            with pytest.raises(FormatError, match=r"^(cannot read )?the file:? (it )?(is not|is nested|has)") as caught:
                parse_json(text, "the file")
            assert len(str(caught.value)) < 300


def test_toml_that_would_hang_fill_or_end_a_program_is_one_error(subtests: pytest.Subtests) -> None:
    for name, text in HOSTILE_TOML.items():
        with subtests.test(name=name):
            with pytest.raises(FormatError, match=r"^(cannot read )?the file:? (it )?(is not|is nested|has)") as caught:
                parse_toml(text, "the file")
            assert len(str(caught.value)) < 300


def test_what_is_as_deep_as_it_may_be_is_read_and_no_deeper() -> None:
    assert parse_json(b"[" * DEEPEST + b"]" * DEEPEST, "x")
    with pytest.raises(FormatError, match=" 32"):
        parse_json(b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), "x")
    assert parse_json(json.dumps("[" * 500).encode(), "x") == "[" * 500
    assert parse_toml(b"a = '" + b"[" * 500 + b"' # " + b"[" * 500, "x") == {"a": "[" * 500}


@given(raw=documents)
@settings(deadline=None, max_examples=150)
def test_every_document_is_read_or_refused_with_an_error_of_ours(raw: bytes) -> None:
    for read in (parse_json, parse_toml):
        try:
            data = read(raw, "x")
        except FormatError:
            continue
        for model in MODELS:
            with suppress(FormatError):
                validated(model, data, "x")
        # What was read can be written again.
        json.dumps(data, ensure_ascii=False, default=str).encode()


@given(raw=st.binary(max_size=100) | st.text("item,\n\r\"'=\0\ufeff", max_size=100).map(str.encode))
@settings(deadline=None)
def test_every_table_is_read_or_refused_with_an_error_of_ours(raw: bytes) -> None:
    try:
        rows = csv_rows(raw, "x", ("item",))
    except FormatError:
        return
    assert all(isinstance(row["item"], str) for row in rows)


@given(value=values)
@settings(deadline=None)
def test_every_summary_is_read_or_refused_with_an_error_of_ours(value: object) -> None:
    path = ROOT / ".pytest_cache" / f"{os.getpid()}.summary.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))
    try:
        with pytest.raises(UsageError):
            read_summary(str(path))
    finally:
        path.unlink()


def test_a_thousand_faults_are_one_sentence_of_bounded_length() -> None:
    data = {f"field {number}\x1b[2J": "x" * 1000 for number in range(5_000)}
    with pytest.raises(FormatError, match=r"more$") as caught:
        validated(Manifest, data, "x")
    assert len(str(caught.value)) < 2_000
    assert str(caught.value).isprintable()


def test_only_regular_files_are_read_and_only_so_much_of_them(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_bytes(b"x")
    os.truncate(tmp_path / "long", 1 << 33)
    for open_it in (lambda path: read_file(path, "file"), lambda path: storage.read_bytes(str(path))):
        for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
            with pytest.raises((UsageError, OSError), match="regular file"):
                open_it(path)
        with pytest.raises(FormatError, match="8,388,608"):
            open_it(tmp_path / "long")
    assert take(io.BytesIO(b"abc"), 3, "x") == b"abc"


def test_a_settings_file_is_bounded_too(tmp_path: Path) -> None:
    path = tmp_path / "deployment.toml"
    path.write_text("#" * (1 << 19))
    with pytest.raises(FormatError, match=r"deployment\.toml .*262,144"):
        read_mapping(path, "deployment file")


PARSERS = {
    "json.load": "hushcount/formats/reading.py",
    "json.loads": "hushcount/formats/reading.py",
    "tomllib.loads": "hushcount/formats/reading.py",
    "tomllib.load": None,
    "model_validate_json": None,
    "np.load": None,
    "format.read_array": None,
    "format.read_array_header_1_0": "hushcount/oracles/tally.py",
    "pickle.load": None,
    "pickle.loads": None,
    "csv.reader": None,
    "csv.DictReader": "pipelines/files/csv_cells.py",
    "pq.read_table": None,
    "pq.ParquetFile": "hushcount/formats/parquet.py",
    "yaml.safe_load": None,
    "yaml.load": None,
}
"""What reads bytes of unknown origin, and the one module that may call it, which bounds them first."""
EXCEPT = {
    # A table of values to simulate, which the user made.
    ("csv.DictReader", "pipelines/jobs/simulate.py"),
}


def _calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield f"{ast.unparse(node.value).rpartition('.')[2]}.{node.attr}"
            yield node.attr
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_nothing_is_parsed_around_the_bounded_readers() -> None:
    around = set()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            module = str(path.relative_to(ROOT))
            for name in set(_calls(ast.parse(path.read_text()))) & PARSERS.keys():
                if PARSERS[name] != module and (name, module) not in EXCEPT:
                    around.add(f"{module} uses {name}")
    assert not around, "read it with hushcount.formats.reading, which bounds it first"


def test_a_model_is_read_by_the_same_door() -> None:
    with pytest.raises(FormatError, match="nested"):
        parse_model(Signature, b"[" * 200_000, "x")
    with pytest.raises(HushcountError, match="object"):
        parse_model(Signature, b"[]", "x")
