"""What is wrong with a file of settings is said in our words: the field, its value, what is allowed."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Iterator

import pytest
from pydantic import ValidationError

import hushcount
import keys
import pipelines
import shuffler
from hushcount.formats.models import _ALLOWED, Part, explain

WRONG: list[object] = [
    None, True, -1, 0, 1.5, 10**30, -(10.0**300), math.nan, math.inf, "", "a", "a" * 300, "\ud800", b"\xff", "1e9",
    "2026-13-01", "2026-12-01T00:00:00", [], ["a"], [[]], {}, {"a": 1}, {1: 2}, {"": {}}, [{"x": None}], object(),
]  # fmt: skip
OURS = ("value_error", "assertion_error")


def models() -> Iterator[type[Part]]:
    for package in (hushcount, keys, pipelines, shuffler):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "kernels" not in module.name:
                importlib.import_module(module.name)
    waiting = [Part]
    while waiting:
        model = waiting.pop()
        waiting += model.__subclasses__()
        if model is not Part and not model.__module__.startswith("tests."):
            yield model


def test_no_error_of_any_file_of_ours_speaks_in_the_words_of_a_library() -> None:
    seen: set[str] = set()
    number = 0
    for model in models():
        for name in [*model.model_fields, "of_no_file"]:
            for value in WRONG:
                try:
                    model.model_validate({name: value})
                except ValidationError as error:
                    sentence = explain(error)
                    number += 1
                    for item in error.errors():
                        seen.add(item["type"])
                        assert item["type"] in OURS or item["msg"] not in sentence, (model, name, value)
    assert number > 1_000
    assert seen - set(OURS) <= set(_ALLOWED)
    assert {"missing", "extra_forbidden", "int_type", "literal_error", "string_pattern_mismatch"} <= seen


def test_a_field_its_value_and_what_is_allowed_are_said(subtests: pytest.Subtests) -> None:
    for field, value, says in [
        ("port", 70_000, ["port is 70000", "65535"]),
        ("port", "eighty", ["port is 'eighty'"]),
        ("prot", 80, ["prot"]),
        ("name", "", ["name is ''"]),
        ("authentication", "clients", ["authentication is 'clients'", "'none'", "'bearer'", "'client-token'"]),
        ("body_seconds", math.nan, ["body_seconds is nan"]),
        ("host", "", ["host is ''", "1"]),
    ]:
        with subtests.test(field=field, value=value):
            from shuffler.collector.settings import CollectorPart

            with pytest.raises(ValidationError) as caught:
                CollectorPart.model_validate({"name": "one", field: value})
            assert all(part in explain(caught.value) for part in says)
            with pytest.raises(ValidationError) as caught:
                CollectorPart.model_validate({})
            assert explain(caught.value).startswith("name: ")


def test_a_file_of_nothing_but_errors_is_one_short_sentence() -> None:
    from shuffler.collector.settings import CollectorPart

    with pytest.raises(ValidationError) as caught:
        CollectorPart.model_validate({f"{number}" * 100: number for number in range(10_000)})
    assert len(explain(caught.value)) < 2_000
    assert "and 9,991 more" in explain(caught.value)
