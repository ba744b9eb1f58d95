"""Importing our modules changes nothing in Beam: what an engine changes there it changes when it starts a job."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = """
import importlib, pkgutil, sys
import pipelines.engine, pipelines.files
def load():
    for room in (pipelines.engine, pipelines.files):
        for module in pkgutil.iter_modules(room.__path__):
            importlib.import_module(f"{room.__name__}.{module.name}")
"""
NAMES = f"{LOADED}load()\nprint(*(name for name in sys.modules if name.partition('.')[0] == 'apache_beam'))"
COMPARED = """
import logging
from apache_beam.io.filesystems import FileSystems
from apache_beam.runners.portability.fn_api_runner.worker_handlers import SubprocessSdkWorkerHandler, WorkerHandler

def plain(value):
    # Containers by what is in them, which a registration changes; all else by what it is.
    if isinstance(value, dict):
        return {key: id(one) for key, one in value.items()}
    return [id(one) for one in value] if isinstance(value, (list, set, tuple)) else id(value)

def seen():
    found = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "apache_beam":
            for key, value in list(vars(module).items()):
                found[name, key] = plain(value)
                if isinstance(value, type) and value.__module__ == name:
                    # The caches of abc count subclasses.
                    held = [(one, of) for one, of in list(vars(value).items()) if "abc" not in one]
                    found.update({(name, key, one): plain(of) for one, of in held})
    loggers = [logging.getLogger(), *logging.root.manager.loggerDict.values()]
    for one in loggers:
        if isinstance(one, logging.Logger) and one.name.partition(".")[0] in ("root", "apache_beam"):
            found["logger", one.name] = (one.level, plain(one.filters), plain(one.handlers))
    return found

before = seen()
load()
after = seen()
print("changed", *sorted(str(key) for key in before.keys() | after.keys() if before.get(key) != after.get(key)))
from pipelines.engine.runner import Engine
assert FileSystems._pipeline_options is None
Engine()
assert FileSystems._pipeline_options is not None
from pipelines.engine.worker_processes import WatchedWorker, watch_workers
kinds = WorkerHandler._registered_environments
assert SubprocessSdkWorkerHandler in [made for made, _ in kinds.values()]
watch_workers()
assert WatchedWorker in [made for made, _ in kinds.values()]
assert SubprocessSdkWorkerHandler not in [made for made, _ in kinds.values()]
"""


def run(source: str) -> list[str]:
    ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


@pytest.mark.long
def test_to_import_the_engine_changes_nothing_in_beam() -> None:
    names = run(NAMES)
    assert "apache_beam" in names
    first = f"{LOADED}for name in {names}: importlib.import_module(name)\n"
    assert run(first + COMPARED) == ["changed"]
