"""Carries the counts of windows that ended to the store; every step can run again with the same result."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from evaluator.counting import manifests_of
from evaluator.metrics import Metrics
from service.logs import error_name
from service.window_folders import kept_windows, remove_gone, remove_window

_LOG = logging.getLogger("hushcount.evaluator")
WriteWhole = Callable[[str, Iterable[bytes]], None]
"""Writes a file of the store; it is whole and durable when this returns."""
_PROBE_SECONDS = 60.0


@dataclass
class ManifestStore:
    """From one directory of counts to one folder of the store."""

    root: Path
    folder: str
    evaluator: str  # its name
    seconds: int  # length of windows without a note of theirs
    write_whole: WriteWhole
    probe: Callable[[], None]  # raises if the store cannot be reached
    metrics: Metrics
    failure: str | None = None
    """Why the store or a window's files failed at the last try; None: they did not."""
    _probed: float = -math.inf

    def carry(self, present: str) -> None:
        """Write the manifests of all windows but the present one, and remove these windows with their keys."""
        try:
            remove_gone(self.root)
            for window in kept_windows(self.root):
                if window != present:
                    self._carry(window)
            if self.failure is not None or time.monotonic() - self._probed > _PROBE_SECONDS:
                self.probe()
                self._probed = time.monotonic()
            self.failure = None
        except Exception as error:
            self.metrics.store_failures.inc()
            if self.failure is None:
                _LOG.error("counts cannot be stored", extra={"error": error_name(error)})
            self.failure = error_name(error)

    def _carry(self, window: str) -> None:
        for path, manifest in manifests_of(self.root, window, self.evaluator, self.seconds).items():
            self.write_whole(f"{self.folder}/{path}", [manifest.model_dump_json(indent=2).encode() + b"\n"])
            self.metrics.manifests.inc()
        remove_window(self.root, window)
        _LOG.info("window stored", extra={"window": window})
