"""hushcount collect: run the collector that a deployment file names, with the deployment's store."""

from __future__ import annotations

from functools import partial

from hushcount.errors import UsageError
from pipelines.deployment.settings import Deployment
from pipelines.files.storage import probe, write_durably
from service.authentication import authenticator, bearer
from service.logs import log_to_stderr
from shuffler.collector.app import serve
from shuffler.collector.service import CollectorSetup


def collect(deployment: Deployment) -> None:
    """Collect reports until SIGTERM or SIGINT comes.

    Raises:
        UsageError: there is no [collector] table, or its address, journal, tokens or campaigns cannot be used.
        HushcountError: another collector uses the journal directory, or the disk of this directory fails.
    """
    settings, segments = deployment.collector, deployment.folder("segments")
    if settings is None:
        raise UsageError(f"deployment file {deployment.path} has no [collector] table: add one with a name")
    log_to_stderr("collector")
    serve(
        CollectorSetup(
            settings=settings,
            journal=deployment.base / settings.journal,
            campaigns=deployment.campaigns,
            segments=segments,
            tiling=deployment.windows.tiling,
            authenticator=authenticator(settings, deployment.base),
            write_whole=partial(write_durably, segments),
            probe=partial(probe, segments),
            metrics_reader=bearer(settings.metrics_token, deployment.base),
        )
    )
