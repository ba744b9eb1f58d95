"""Write docs/deployment-file.md: every key of a deployment file, from the models that read it.

    python docs/reference.py > docs/deployment-file.md

tests/test_docs.py fails if the page is not current.
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any, Literal, Union

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hushcount.senders import WAYS
from pipelines.deployment.parts import Duration
from pipelines.deployment.settings import FOLDERS, SAID, DeploymentFile

HEAD = f"""# Every key of the deployment file

One TOML or JSON file describes a deployment to `hushcount collect`, `evaluate`, `run`, `status`, `doctor` and
`ask` ([for operators](operators.md)). An unknown key is an error. A duration is a whole number and a unit: `15m`.
Paths are relative to the file. The names under `paths` are {", ".join(f"`{one}`" for one in FOLDERS)};
and `{SAID[0]}/PARTY`, `{SAID[1]}/PARTY`.
The ways of `authentication` are {", ".join(f"`{one}`" for one in WAYS)}.

This page is generated: `python docs/reference.py > docs/deployment-file.md`.
"""
NAMES: dict[Any, str] = {str: "text", int: "integer", float: "number", bool: "true or false", timedelta: "duration"}


def part_of(kind: Any) -> type[BaseModel] | None:
    """Return the model of a table, also where it is optional or a table of such tables."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next((part for one in typing.get_args(kind) if (part := part_of(one)) is not None), None)


def name_of(kind: Any) -> str:
    """Return the type of a value in words."""
    origin, below = typing.get_origin(kind), typing.get_args(kind)
    if kind in NAMES or kind == Duration:
        return NAMES.get(kind, "duration")
    if origin is Annotated:
        return name_of(below[0])
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in below)
    if origin in (Union, types.UnionType):
        return " or ".join(name_of(one) for one in below if one is not type(None))
    if origin is tuple:
        return f"list of {name_of(below[0])}"
    if origin is dict:
        return f"table of {name_of(below[1])}"
    raise TypeError(f"{kind!r} has no name in words: add it to docs/reference.py")


def range_of(field: FieldInfo) -> str:
    """Return the allowed range of a number, or nothing."""
    words = {Ge: "at least {ge:,}", Gt: "above {gt:,}", Le: "at most {le:,}", Lt: "below {lt:,}"}
    said = [words[type(bound)].format(**asdict(bound)) for bound in field.metadata if type(bound) in words]
    said += ["not empty" for bound in field.metadata if isinstance(bound, MinLen)]
    return "".join(f", {one}" for one in said)


def value_of(value: Any) -> str:
    """Return a default as TOML writes it."""
    if isinstance(value, timedelta):
        seconds = int(value.total_seconds())
        unit, letter = next(
            (unit, one) for unit, one in ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s")) if seconds % unit == 0
        )
        return f'`"{seconds // unit}{letter}"`'
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return "`[" + ", ".join(value_of(one).strip("`") for one in value) + "]`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value!r}`"


def default_of(field: FieldInfo) -> str:
    """Return what a key that is left out stands for."""
    if field.is_required():
        return "**required**"
    value = field.get_default(call_default_factory=True)
    return "" if value is None or value == {} else value_of(value)


def table(title: str, part: type[BaseModel], intro: str) -> str:
    """Return the section of one table of the file: a row for each key that is no table itself."""
    rows = [
        f"| `{name}` | {name_of(field.annotation)}{range_of(field)} | {default_of(field)} | {field.description or ''} |"
        for name, field in part.model_fields.items()
        if part_of(field.annotation) is None
    ]
    return "\n".join(
        [f"## {title}\n", f"{intro}\n", "| key | value | default | what |", "|---|---|---|---|", *rows, ""]
    )


def below(name: str, part: type[BaseModel]) -> list[str]:
    """Return the sections of the tables by name that lie in a table of the file."""
    sections = []
    for key, field in part.model_fields.items():
        inner = part_of(field.annotation)
        if inner is not None:
            about = field.description or ""
            said = f"{about[:1].upper()}{about[1:]}. {inspect.cleandoc(inner.__doc__ or '')}"
            sections.append(table(f"`[{name}.{key}]`", inner, said))
    return sections


def page() -> str:
    """Return the whole page."""
    sections = [table("Top level", DeploymentFile, "The file, outside of any table.")]
    for name, field in DeploymentFile.model_fields.items():
        part = part_of(field.annotation)
        if part is not None:
            nested = typing.get_origin(field.annotation) is dict
            title = f"[{name}.CAMPAIGN]" if nested else f"[{name}]"
            need = " Required." if field.is_required() else ""
            about = f" {field.description[0].upper()}{field.description[1:]}." if field.description else ""
            sections.append(table(f"`{title}`", part, f"{inspect.cleandoc(part.__doc__ or '')}{about}{need}"))
            sections += below(name, part)
    return "\n".join([HEAD, *sections]).rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
