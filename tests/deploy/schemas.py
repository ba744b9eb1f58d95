"""Make the JSON schemas that kubeconform reads, from those in Kubernetes' own Go module: `make check-deploy`.

    python tests/deploy/schemas.py --into build/tools/kubernetes-schemas

Needs go. Its OpenAPI documents hold the kinds of some groups only; of the rest the module has the shapes that
server-side apply merges by: names and types of all fields, but not which are required.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

MODULE = "k8s.io/client-go@v0.32.4"
SHAPES = {"io.k8s.api.networking.v1.NetworkPolicy": "networkpolicy-networking-v1"}
Schema = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description="Make JSON schemas for kubeconform.")
    parser.add_argument("--into", type=Path, required=True, help="Directory.")
    into: Path = parser.parse_args().into
    into.mkdir(parents=True, exist_ok=True)
    command = ["go", "mod", "download", "-json", MODULE]
    told = subprocess.run(command, check=True, capture_output=True)  # noqa: S603  # our own command
    module = Path(json.loads(told.stdout)["Dir"])
    for path in sorted((module / "openapi" / "openapitest" / "testdata").glob("*.json")):
        written(into, json.loads(path.read_text())["components"]["schemas"])
    shapes(into, (module / "applyconfigurations" / "internal" / "internal.go").read_text())
    print(f"{len(list(into.iterdir()))} schemas in {into}")


def written(into: Path, schemas: dict[str, Schema]) -> None:
    """Write a file for every kind of an OpenAPI document."""
    definitions = {name: strict(schema) for name, schema in schemas.items()}
    for name in definitions:
        if name.endswith((".IntOrString", ".Quantity")):
            definitions[name] = {"type": ["string", "number"]}
    for name, schema in schemas.items():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            group = "-" + kind["group"].partition(".")[0] if kind["group"] else ""
            file = into / f"{kind['kind']}{group}-{kind['version']}.json".lower()
            file.write_text(json.dumps({**definitions[name], "definitions": definitions}))


def strict(schema: Any) -> Any:
    """Return an OpenAPI schema as a JSON schema that takes no field that it does not name."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(value) for name, value in schema.items() if not name.startswith("x-")}
    if isinstance(made.get("$ref"), str):
        made["$ref"] = made["$ref"].replace("#/components/schemas/", "#/definitions/")
    if isinstance(made.get("properties"), dict) and made.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


def shapes(into: Path, source: str) -> None:
    """Write a file for every kind of `SHAPES`, from the shapes that server-side apply merges by."""
    (text,) = re.findall(r"typed\.YAMLObject\(`(.*?)`\)", source, re.DOTALL)
    types = {one["name"]: one for one in yaml.load(text, Loader=yaml.CSafeLoader)["types"]}
    definitions = {name: shape(one) for name, one in types.items()}
    for name, file in SHAPES.items():
        # Time is a string there too.
        (into / f"{file}.json").write_text(json.dumps({**definitions[name], "definitions": definitions}))


def shape(one: Schema) -> Schema:
    if "namedType" in one:
        return {"$ref": f"#/definitions/{one['namedType']}"}
    if "scalar" in one and "map" not in one:
        kinds = {"string": "string", "numeric": "number", "boolean": "boolean"}
        return {"type": kinds[one["scalar"]]} if one["scalar"] in kinds else {}
    if "list" in one:
        return {"type": "array", "items": shape(one["list"]["elementType"])}
    if "map" in one and "fields" in one["map"]:
        fields = {field["name"]: shape(field["type"]) for field in one["map"]["fields"]}
        return {"type": "object", "properties": fields, "additionalProperties": False}
    if "map" in one and "elementType" in one["map"] and "scalar" not in one:
        return {"type": "object", "additionalProperties": shape(one["map"]["elementType"])}
    return {}


if __name__ == "__main__":
    main()
