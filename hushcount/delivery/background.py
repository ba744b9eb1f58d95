"""The thread of a sender, which delivers what is due until the sender is closed."""

from __future__ import annotations

import math
import os
import threading

from hushcount.clock import Clock
from hushcount.delivery.delivering import Deliverer
from hushcount.delivery.events import TellEvent
from hushcount.errors import HushcountError

_LONGEST_SLEEP = 60.0


class Background:
    """Runs rounds of delivery in one thread of this process; threads may share this object.

    Args:
        deliverer: makes the rounds.
        tell: function that is called with the reason why a round failed.
        clock: the device's.
    """

    def __init__(self, deliverer: Deliverer, tell: TellEvent, clock: Clock) -> None:
        self._deliverer, self._tell, self._clock = deliverer, tell, clock
        self._thread: threading.Thread | None = None
        self._process, self._ending, self._wake = os.getpid(), threading.Event(), threading.Event()
        self._wakes_at = math.inf

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._process == os.getpid() and self._thread.is_alive()

    def start(self) -> None:
        """Start the thread, unless it runs in this process."""
        if not self.is_running:
            self._process, self._ending, self._wake = os.getpid(), threading.Event(), threading.Event()
            self._thread = threading.Thread(target=self._run, name="hushcount", daemon=True)
            self._thread.start()

    def go_on_after_fork(self) -> None:
        """Start the thread in a process that was forked while the thread ran."""
        if self._thread is not None and self._process != os.getpid():
            self.start()

    def wake_before(self, due: float) -> None:
        """Begin a round now if the thread sleeps longer than until `due`, in seconds since 1970."""
        if due < self._wakes_at:
            self._wake.set()

    def end(self) -> None:
        """End the thread after the round that runs; the first round always runs, to send what waited before."""
        self._ending.set()
        self._wake.set()
        if self._thread is not None and self.is_running:
            self._thread.join()
        self._thread = None

    def _run(self) -> None:
        ending, wake = self._ending, self._wake
        while True:
            self._wakes_at = math.inf
            wake.clear()
            sleep, began = _LONGEST_SLEEP, self._clock.seconds()
            try:
                self._deliverer.deliver(early=False)
                sleep = self._deliverer.seconds_to_wait(began)
            except (HushcountError, OSError) as error:
                self._tell("again", str(error))
            # Look at the queue once a minute, because other processes may queue reports, and the clock may be set.
            sleep = min(sleep, _LONGEST_SLEEP)
            self._wakes_at = self._clock.seconds() + sleep
            if not ending.is_set():
                wake.wait(sleep)
            if ending.is_set():
                return
