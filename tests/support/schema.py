"""The part of JSON Schema that pydantic writes, checked without a further dependency."""

from __future__ import annotations

import re
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
_KNOWN = {
    "$defs", "$ref", "additionalProperties", "anyOf", "const", "default", "description", "enum", "exclusiveMaximum",
    "exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems", "minLength", "minimum", "pattern",
    "properties", "required", "title", "type",
}  # fmt: skip


def violations(schema: dict[str, Any], value: Any) -> list[str]:
    """Return what is wrong with a value, with its place; raises on a keyword that it does not know."""
    return list(_check(schema, value, schema, "value"))


def _check(schema: dict[str, Any], value: Any, root: dict[str, Any], place: str) -> list[str]:  # noqa: PLR0912
    if set(schema) - _KNOWN:
        raise NotImplementedError(f"keywords {set(schema) - _KNOWN}")
    if "$ref" in schema:
        return _check(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root, place)
    if "anyOf" in schema:
        tried = [_check(option, value, root, place) for option in schema["anyOf"]]
        return [] if [] in tried else [error for errors in tried for error in errors]
    if "type" in schema and (
        not isinstance(value, _TYPES[schema["type"]]) or isinstance(value, bool) != (schema["type"] == "boolean")
    ):
        return [f"{place} is no {schema['type']}"]
    wrong = []
    if "const" in schema and value != schema["const"]:
        wrong.append(f"{place} is not {schema['const']}")
    if "enum" in schema and value not in schema["enum"]:
        wrong.append(f"{place} is none of {schema['enum']}")
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        wrong.append(f"{place} does not match {schema['pattern']}")
    if isinstance(value, (int, float)):
        bounds = (
            value < schema.get("minimum", value),
            value > schema.get("maximum", value),
            "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"],
            "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"],
        )
        wrong += [f"{place} is out of range"] * any(bounds)
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            wrong.append(f"{place} has {len(value)} items")
        for index, item in enumerate(value):
            wrong += _check(schema["items"], item, root, f"{place}[{index}]")
    if isinstance(value, dict):
        wrong += [f"{place} lacks {name}" for name in schema.get("required", ()) if name not in value]
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", True))
            if inner is False:
                wrong.append(f"{place} may not have {name}")
            elif isinstance(inner, dict):
                wrong += _check(inner, item, root, f"{place}.{name}")
    return wrong
