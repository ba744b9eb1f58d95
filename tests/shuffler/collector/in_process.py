"""A collector in the process of the test, for what no request and no signal can bring about."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from hushcount.collection.tilings import Tiling
from pipelines.files.storage import probe, write_durably
from service.authentication import Anyone
from shuffler.collector.service import Collector, CollectorSetup
from shuffler.collector.settings import CollectorPart
from tests.shuffler.collector.running import Site


def collector_of(site: Site, length: timedelta) -> Collector:
    """Return the collector of a site, not started; within an event loop."""
    segments = str(site.segments)
    site.journal.mkdir(exist_ok=True)
    settings = CollectorPart(name="one", least_free_bytes=0)
    return Collector(
        CollectorSetup(
            settings=settings,
            journal=site.journal,
            campaigns=site.base / "campaigns",
            segments=segments,
            tiling=Tiling(length),
            authenticator=Anyone(),
            write_whole=partial(write_durably, segments),
            probe=partial(probe, segments),
        )
    )
