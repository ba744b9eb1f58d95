"""Strict, frozen models of files and settings, and their errors in one sentence."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

_LONGEST_REPEATED = 60
_MOST_TOLD = 10


class Part(BaseModel):
    """A section: unknown fields are errors, numbers are finite, nothing changes after validation."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def explain(error: ValidationError, name: str = "it") -> str:
    """Return all errors of a validation in one sentence: each field, its value and what is allowed.

    The sentence uses `name` for data without fields, and for data that is invalid as a whole.
    """
    found = error.errors(include_url=False)
    more = [f"and {len(found) - _MOST_TOLD:,} more"] if len(found) > _MOST_TOLD else []
    return "; ".join([*(_sentence(item, name) for item in found[:_MOST_TOLD]), *more])


def _sentence(item: ErrorDetails, whole: str) -> str:
    field = _name(item["loc"])
    if item["type"] in ("value_error", "assertion_error"):
        # The message of one of our own validators already names the value.
        said = item["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        return f"{field}: {said}" if field else said if whole == "it" else f"{whole}: {said}"
    # A missing field has no value.
    given = None if item["type"] in ("missing", "extra_forbidden") else _short(item["input"])
    facts = item.get("ctx", {})
    allowed = _ALLOWED.get(item["type"], "must have another form").format_map(facts)
    if item["type"] == "string_pattern_mismatch":
        allowed = FORMS.get(facts["pattern"], allowed)
    name = field or whole
    return f"{name} is {given}: {allowed}" if given is not None else f"{name}: {allowed}"


def _name(steps: tuple[int | str, ...]) -> str:
    """Return the path of a field; the names in the path come from the file and may be any text."""
    field = ".".join(str(step)[:_LONGEST_REPEATED] for step in steps)[:_LONGEST_REPEATED]
    return field if field.isprintable() else ascii(field)


def _short(value: object) -> str | None:
    """Return a short plain value as Python writes it, or None for any other value."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST_REPEATED else None
    if isinstance(value, int):
        return repr(value) if abs(value) < 1 << 64 else None
    return repr(value) if value is None or isinstance(value, float) else None


FORMS: dict[str, str] = {}
"""The required form of a text in words, by the pattern that checks it."""


def text_of(pattern: str, form: str) -> StringConstraints:
    """Return the constraint that a text matches a pattern; errors show `form` in place of the pattern."""
    FORMS[pattern] = form
    return StringConstraints(pattern=pattern)


_NUMBER, _WHOLE, _TEXT = "must be a number", "must be a whole number", "must be text"
_LIST, _TABLE = "must be a list", "must be a table of names and values"
_TIME = "must be a time with its zone, as in 2026-12-01T00:00:00Z"
_ALLOWED = {
    "missing": "is missing: it must be given",
    "extra_forbidden": "is no field of this file: correct its name, or leave it out",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "finite_number": "must be a finite number",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), _WHOLE),
    **dict.fromkeys(("float_type", "float_parsing"), _NUMBER),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("string_type", "string_unicode", "string_sub_type", "path_type"), _TEXT),
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    **dict.fromkeys(("tuple_type", "list_type", "set_type", "frozen_set_type"), _LIST),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"), _TABLE),
    "too_short": "must hold at least {min_length}",
    "too_long": "must hold at most {max_length}",
    "invalid_key": "must have names that are text",
    "none_required": "must not be given",
    **dict.fromkeys(("time_delta_type", "time_delta_parsing"), "must be a duration, as in 15m or 1d"),
    **dict.fromkeys(
        (
            *("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "datetime_object_invalid"),
            *("timezone_aware", "timezone_naive", "timezone_offset", "datetime_past", "datetime_future"),
        ),
        _TIME,
    ),
    **dict.fromkeys(
        ("date_type", "date_parsing", "date_from_datetime_parsing", "date_from_datetime_inexact"),
        "must be a date, as in 2026-12-24",
    ),
    **dict.fromkeys(("json_invalid", "json_type"), "must be JSON"),
}
"""The allowed values, by pydantic's type of error; pydantic's own messages address the author of the model."""
Hex8 = Annotated[str, text_of(r"^[0-9a-f]{16}$", "must be 16 hexadecimal digits")]
"""8 bytes in lower-case hexadecimal digits."""
Hex32 = Annotated[str, text_of(r"^[0-9a-f]{64}$", "must be 64 hexadecimal digits, in lower case")]
"""32 bytes in lower-case hexadecimal digits."""
FileName = Annotated[
    str, text_of(r"^[^/\\\\:.\x00-\x1f][^/\\\\:\x00-\x1f]{0,127}$", "must be a plain file name, without a folder")
]
"""Plain name of a file in the same directory."""
