"""The vectors are current, valid under their schema, small, and say what must be refused."""

from __future__ import annotations

import json
from itertools import product
from math import prod
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.vectors.make import FOLDER, SUBJECTS, text
from tests.vectors.subjects import answers

FILES = sorted(path for path in FOLDER.glob("*.json") if path.name != "schema.json")
SCHEMA = json.loads((FOLDER / "schema.json").read_text(encoding="ascii"))
VALIDATOR = Draft202012Validator(SCHEMA)


def content(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="ascii"))


def test_a_second_run_changes_nothing(subtests: pytest.Subtests) -> None:
    for subject in SUBJECTS:
        with subtests.test(subject=subject):
            stored = (FOLDER / f"{subject}.json").read_text(encoding="ascii")
            assert stored == text(SUBJECTS[subject]()), "run: make vectors"


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_every_file_is_valid(subtests: pytest.Subtests) -> None:
    for path in FILES:
        with subtests.test(path=path.stem):
            assert VALIDATOR.is_valid(json.loads(path.read_text(encoding="ascii")))


def test_the_schema_refuses_a_reason_that_it_does_not_name(subtests: pytest.Subtests) -> None:
    for subject in SUBJECTS:
        with subtests.test(subject=subject):
            data = content(subject)
            short = {**data, "accept": data["accept"][:1], "refuse": data["refuse"][:1]}
            assert VALIDATOR.is_valid(short)
            short["refuse"][0]["reason"] = "no_such_reason"
            assert not VALIDATOR.is_valid(short)


def test_every_reason_of_the_schema_is_that_of_an_entry(subtests: pytest.Subtests) -> None:
    for subject in SUBJECTS:
        with subtests.test(subject=subject):
            part = SCHEMA["$defs"][subject]["properties"]["refuse"]["items"]
            part = SCHEMA["$defs"][part["$ref"].split("/")[-1]] if "$ref" in part else part
            assert set(part["properties"]["reason"]["enum"]) == {
                entry["reason"] for entry in content(subject)["refuse"]
            }


def test_the_answers_are_every_combination_of_their_values_once() -> None:
    rows = [row for kind in ("accept", "refuse") for row in content("answers")[kind]]
    combined = [json.dumps(one) for row in rows for one in product(*(row[axis] for axis in answers.VALUES))]
    assert len(combined) == len(set(combined)) == prod(map(len, answers.VALUES.values()))


def test_no_entry_is_there_twice(subtests: pytest.Subtests) -> None:
    for subject in SUBJECTS:
        with subtests.test(subject=subject):
            for kind in ("accept", "refuse"):
                lines = [json.dumps(entry) for entry in content(subject)[kind]]
                assert len(set(lines)) == len(lines)


def test_at_least_as_much_is_refused_as_accepted() -> None:
    numbers = {name: (len(content(name)["accept"]), len(content(name)["refuse"])) for name in SUBJECTS}
    assert sum(refused for _, refused in numbers.values()) >= sum(accepted for accepted, _ in numbers.values())
    assert all(2 * refused >= accepted for accepted, refused in numbers.values())


def test_all_of_it_is_a_small_download() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_250_000


def test_the_readme_and_the_wire_format_name_every_file() -> None:
    told = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    page = (FOLDER.parents[1] / "docs" / "wire-format.md").read_text(encoding="utf-8")
    assert all(f"`v1/{path.name}`" in told and f"`vectors/v1/{path.name}`" in page for path in FILES)
