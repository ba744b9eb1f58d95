"""Carries the counts of windows that ended to the store; a step that runs again has the same result."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from evaluator.counting import manifests_of
from evaluator.metrics import Metrics
from hushcount.clock import Clock
from hushcount.collection.tilings import Tiling
from hushcount.errors import HushcountError
from service.logs import error_name
from service.store import WriteWhole
from service.window_folders import kept_windows, remove_gone, remove_window

_LOG = logging.getLogger("hushcount.evaluator")
_PROBE_SECONDS = 60.0


@dataclass
class ManifestStore:
    """Carries manifests from one directory of counts to one folder of the store."""

    root: Path
    folder: str
    evaluator: str  # name of the evaluator
    tiling: Tiling  # tells the length of a window that has no note of its length
    write_whole: WriteWhole
    probe: Callable[[], None]  # raises if the store cannot be reached
    metrics: Metrics
    clock: Clock
    failure: str | None = None
    """Why the store, or the removal of a window, failed at the last try; None: neither failed."""
    unread: dict[str, str] = field(default_factory=dict)
    """By window, why the window's files cannot be read."""
    _probed: float = -math.inf

    def carry(self, present: str) -> None:
        """Write the manifests of all windows before the present window, and remove these windows with their keys.

        `present` may be out of date: a later window may have begun since.
        """
        try:
            remove_gone(self.root)
            kept = kept_windows(self.root)
            for window in self.unread.keys() - set(kept):
                del self.unread[window]
            for window in kept:
                if window < present:
                    self._carry(window)
            if self.failure is not None or self.clock.steady() - self._probed > _PROBE_SECONDS:
                self.probe()
                self._probed = self.clock.steady()
            self.failure = None
        except Exception as error:
            self.metrics.store_failures.inc()
            if self.failure is None:
                _LOG.error("counts cannot be stored", extra={"error": error_name(error)})
            self.failure = error_name(error)

    def _carry(self, window: str) -> None:
        try:
            manifests = manifests_of(self.root, window, self.evaluator, self.tiling)
        except Exception as error:
            # The next call tries this window again, because an operator may repair its files; other windows do not wait
            # for this window.
            failure = str(error) if isinstance(error, HushcountError) else error_name(error)
            if self.unread.get(window) != failure:
                _LOG.error("window cannot be stored", extra={"window": window, "failure": failure})
            self.unread[window] = failure
            return
        self.unread.pop(window, None)
        for path, manifest in manifests.items():
            self.write_whole(f"{self.folder}/{path}", [manifest.model_dump_json(indent=2).encode() + b"\n"])
            self.metrics.manifests.inc()
        remove_window(self.root, window)
        _LOG.info("window stored", extra={"window": window})
