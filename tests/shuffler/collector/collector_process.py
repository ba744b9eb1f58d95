"""The commands `collect` and `evaluate`, each in a process of its own, forked from one that has the slow imports."""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
import time
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from evaluator import evaluator
from hushcount.clock import MACHINE
from pipelines.entry import main
from shuffler.collector import service
from shuffler.collector.journals.watched_clock import WatchedClock

_LOOKS_EVERY = 0.05
"""Seconds between two looks of the collector at its campaigns and its window."""
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        __name__,
        "pipelines.cli",
        "pipelines.commands.operate",
        "pipelines.deployment.collector",
        "pipelines.deployment.evaluator",
        "pipelines.deployment.issuer",
        "pipelines.deployment.settings",
    ]
)


def start_collector(
    config: Path, log: Path, ahead: float, command: str = "collect"
) -> tuple[BaseProcess, Synchronized[float]]:
    """Start the command on a deployment file; its standard error goes to the log.

    Returns:
        The process, and by how many seconds its time is ahead of ours: whoever raises that lets time pass for it.
    """
    log.touch()
    shared = _FORKS.Value("d", ahead)
    process = _FORKS.Process(target=_collect, args=(config, log, shared, command), daemon=True)
    process.start()
    return process, shared


def _collect(config: Path, log: Path, ahead: Synchronized[float], command: str) -> None:
    # The machine's clock of this process, which no command is given.
    vars(MACHINE)["seconds"] = lambda: time.time() + ahead.value
    # A clock that jumps is what it must not believe; here that is how time passes.
    service.WatchedClock = lambda _, clock: WatchedClock(math.inf, clock)  # type: ignore[assignment, misc]
    service._TICK_SECONDS = _LOOKS_EVERY
    evaluator._TICK_SECONDS = evaluator._STORE_SECONDS = _LOOKS_EVERY
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), sys.stderr.fileno())
    sys.argv = ["hushcount", command, "--config", str(config)]
    main()
