"""Loads every pickle of a job graph as a worker would, in a process that has only the packages of a worker.

Run it by file name with `python -I -S`. The script reads a JSON object from standard input, and writes a JSON object to
standard output. This script itself imports no module of the project; only loading the pickles imports such modules.
"""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import sys
from typing import Any

_BY_VALUE = ("_make_function", "_make_skeleton_class")


class _Reader(pickle.Unpickler):
    """An unpickler that collects the functions and classes that a pickle holds with their code instead of by name."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self.made: list[Any] = []
        self.names: list[tuple[str, str]] = []

    def find_class(self, module: str, name: str) -> Any:
        self.names.append((module, name))
        found = super().find_class(module, name)
        if name not in _BY_VALUE or "cloudpickle" not in module:
            return found

        def remembering(*arguments: Any, **options: Any) -> Any:
            result = found(*arguments, **options)
            self.made.append(result)
            return result

        return remembering


def _look(content: bytes) -> dict[str, Any]:
    """Return the names in a pickle and the code that it holds by value; or why the pickle cannot be loaded."""
    reader = _Reader(io.BytesIO(content))
    try:
        reader.load()
    except Exception as error:
        # The exception's own text is left out, because it could quote the pickle.
        module, name = reader.names[-1] if reader.names else ("its", "beginning")
        reason = f"no module {error.name}" if isinstance(error, ImportError) else type(error).__name__
        return {"fails": f"{reason}, at {module}.{name}", "names": reader.names}
    by_value = [
        f"{one.__module__}.{one.__qualname__}"
        for one in reader.made
        if str(one.__module__).partition(".")[0] != "apache_beam"
    ]
    return {"by_value": by_value, "names": reader.names}


def main() -> None:
    """Read {"paths", "project", "pickles"}; write the facts of each pickle, and project modules from other places."""
    asked = json.load(sys.stdin)
    sys.path.extend(asked["paths"])
    looked = [_look(base64.b64decode(content)) for content in asked["pickles"]]
    home = os.path.realpath(asked["paths"][0]) + os.sep
    ours, strangers = set(), set()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in asked["project"]:
            ours.add(name)
            if not os.path.abspath(str(getattr(module, "__file__", None))).startswith(home):
                strangers.add(name)
    json.dump({"looked": looked, "ours": sorted(ours), "strangers": sorted(strangers)}, sys.stdout)


if __name__ == "__main__":
    main()
