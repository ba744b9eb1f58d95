"""The `collect` command in a process of its own, forked from one that has its imports: they cost two seconds."""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path

from pipelines.entry import main

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        __name__,
        "pipelines.cli",
        "pipelines.commands.collect",
        "pipelines.deployment.collector",
        "pipelines.deployment.settings",
    ]
)


def start_collector(config: Path, log: Path) -> BaseProcess:
    """Start the command on a deployment file; its standard error goes to the log."""
    log.touch()
    process = _FORKS.Process(target=_collect, args=(config, log), daemon=True)
    process.start()
    return process


def _collect(config: Path, log: Path) -> None:
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), sys.stderr.fileno())
    sys.argv = ["hushcount", "collect", "--config", str(config)]
    main()
