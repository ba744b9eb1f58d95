"""Send reports without a pause, kill the collector in the middle, and see what it kept."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter

import httpx

from tests.shuffler.collector.running import STREAM, Running, Site, start, wait_for
from tests.support import patient

_SENDERS = 4


class Load:
    """Senders that post random reports until they are stopped or the collector is gone."""

    def __init__(self, collector: Running, lengths: dict[str, int]) -> None:
        self.acknowledged: Counter[bytes] = Counter()
        self.refused: Counter[int] = Counter()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._send, args=(collector, lengths), daemon=True) for _ in range(_SENDERS)
        ]
        for thread in self._threads:
            thread.start()

    def _send(self, collector: Running, lengths: dict[str, int]) -> None:
        with patient.Client(base_url=collector.url) as client:
            while not self._stopping.is_set():
                for number, (stream, length) in enumerate(lengths.items(), start=1):
                    reports = [os.urandom(length) for _ in range(3 * number)]
                    try:
                        answer = client.post(collector.path(stream), content=b"".join(reports), headers=STREAM)
                    except httpx.TransportError:
                        if collector.ended() or self._stopping.is_set():
                            return
                        continue
                    if answer.status_code == 202:
                        self.acknowledged.update(reports)
                    else:
                        self.refused[answer.status_code] += 1

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()


def crash_and_recover(site: Site, times: int, seconds: float) -> None:
    """Kill a collector under load again and again; every acknowledged report must be in the store exactly once."""
    campaign = site.campaign()
    lengths = {stream: campaign.sealed_bytes(stream) for stream in campaign.streams}
    acknowledged: Counter[bytes] = Counter()
    for turn in range(times):
        collector = start(site)
        load = Load(collector, dict(lengths))
        wait_for(lambda: load.acknowledged, what="an acknowledgement")  # noqa: B023  # called in this turn only
        # Not at the same moment each time.
        time.sleep(seconds * (1 + turn % 5) / 3)
        collector.kill()
        load.stop()
        acknowledged += load.acknowledged
    last = start(site)
    assert last.stop() == 0
    stored: Counter[bytes] = Counter()
    for stream in lengths:
        stored.update(site.sealed(stream))
    lost = acknowledged.keys() - stored.keys()
    assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged reports are gone"
    copies = [number for report, number in stored.items() if number != 1]
    assert not copies, f"{len(copies)} reports are stored more than once"
    assert not list(site.journal.glob("*/*/*/*.journal"))
