"""Write the map of rooms into docs/adr/0026-rooms.md: from the contracts in pyproject.toml and each room's docstring.

    python docs/rooms.py

tests/test_docs.py fails if the map is not current.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from hushcount.formats.reading import read_mapping

ROOT = Path(__file__).parents[1]
DECISION = ROOT / "docs" / "adr" / "0026-rooms.md"
HEAD = "## The map\n"
"""The last section of the decision."""


def rooms() -> Iterator[tuple[str, int, Path]]:
    """Yield the package, the floor from the bottom and the file of each room, from top to bottom."""
    contracts = read_mapping(ROOT / "pyproject.toml", "project file")["tool"]["importlinter"]["contracts"]
    for contract in contracts:
        for package in contract.get("containers", ()):
            folder, floors = ROOT / package.replace(".", "/"), len(contract["layers"])
            for below, layer in enumerate(contract["layers"]):
                for name in layer.split(" | "):
                    room = folder / name / "__init__.py"
                    yield package, floors - below, room if room.exists() else folder / f"{name}.py"


def sentence(file: Path) -> str:
    """Return the first sentence of a module's docstring; empty if it does not begin with one."""
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    found = re.match(r"[^\n]*?[^\n.]\.(?=\s|$)", said)
    return found[0] if found else ""


def page() -> str:
    """Return the decision with the current map."""
    rows, before = [], ""
    for package, floor, file in rooms():
        if package != before:
            rows.append(f"\n| floor | `{package.replace('.', '/')}/` | |\n|---|---|---|\n")
        name = f"{file.parent.name}/" if file.name == "__init__.py" else file.name
        rows.append(f"| {floor} | `{name}` | {sentence(file)} |\n")
        before = package
    return DECISION.read_text(encoding="utf-8").partition(HEAD)[0] + HEAD + "".join(rows)


if __name__ == "__main__":
    DECISION.write_text(page(), encoding="utf-8")
