"""The two axes of the grid: what differs by encoder or responder is said by it, and asked of nobody by its class."""

from __future__ import annotations

import ast
from pathlib import Path

import hushcount

PACKAGE = Path(hushcount.__file__).parent
AXES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent.name in ("encoders", "responders")]
CLASSES = {
    node.name: path for path in AXES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)
}


def classes_asked_for(source: str) -> set[str]:
    """Return the names of encoders and responders that a module tests values against."""
    asked: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
                asked |= names(kinds)
            case ast.MatchClass(cls=kind):
                asked |= names(kind)
            case ast.Compare(left=ast.Call(func=ast.Name(id="type")), comparators=kinds):
                asked |= {name for kind in kinds for name in names(kind)}
    return asked & set(CLASSES)


def names(tree: ast.AST) -> set[str]:
    return {node.id if isinstance(node, ast.Name) else node.attr for node in ast.walk(tree) if has_name(node)}


def has_name(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute))


def test_no_module_asks_an_encoder_or_a_responder_for_its_class() -> None:
    assert {"Affine", "Pool", "Unary", "Interval"} <= set(CLASSES)
    asked = {path: classes_asked_for(path.read_text()) for path in PACKAGE.rglob("*.py")}
    assert {path: found for path, found in asked.items() if any(CLASSES[name] != path for name in found)} == {}


def test_every_way_to_ask_is_seen() -> None:
    assert classes_asked_for("if isinstance(one.encoder, (Affine, int)): ...") == {"Affine"}
    assert classes_asked_for("if isinstance(responder, unary.Unary | int): ...") == {"Unary"}
    assert classes_asked_for("if type(encoder) is Pool: ...") == {"Pool"}
    assert classes_asked_for("match encoder:\n    case Nested(): ...") == {"Nested"}
    assert classes_asked_for("if isinstance(value, int): ...\nencoder = Affine(2, 3, 3)") == set()
