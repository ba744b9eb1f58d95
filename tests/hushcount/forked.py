"""Work in forked processes, all at once."""

from __future__ import annotations

import json
import os
import traceback
import warnings
from collections.abc import Callable
from typing import Any


def fork() -> int:
    """Fork, although the process of the tests may have threads: what is tested holds none of their locks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def forked(work: Callable[[], Any], processes: int, *, here: bool = False) -> list[Any]:
    """Return what a function returns in so many children, as JSON has it, and last in this process if it works too."""
    children = []
    for _ in range(processes):
        reading, writing = os.pipe()
        child = fork()
        if child == 0:
            status = 1
            try:
                os.write(writing, json.dumps(work()).encode())
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(writing)
        children.append((child, reading))
    own = [work()] if here else []
    results = []
    for child, reading in children:
        with os.fdopen(reading, "rb") as stream:
            results.append(stream.read())
        assert os.waitpid(child, 0)[1] == 0
    return [*map(json.loads, results), *own]
