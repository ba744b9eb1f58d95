"""hushcount issue: run the issuer of passes that a deployment file names."""

from __future__ import annotations

from hushcount.errors import UsageError
from issuer.app import serve
from issuer.rules import rule_of
from issuer.service import IssuerSetup
from keys.issuing import arithmetic
from pipelines.deployment.settings import Deployment
from service.authentication import bearer
from service.logs import log_to_stderr


def issue(deployment: Deployment) -> None:
    """Sign passes until SIGTERM or SIGINT comes.

    Raises:
        UsageError: gmpy2 is not installed, there is no [issuer] table, or its address, keys, rule or directories cannot
            be used.
        HushcountError: another issuer uses the directory of counts, or the disk of this directory fails.
    """
    settings, base = deployment.file.issuer, deployment.base
    if settings is None:
        raise UsageError(f"deployment file {deployment.path} has no [issuer] table: add one with a name and a rule")
    if not (base / settings.keys).is_dir():
        raise UsageError(f"{base / settings.keys} is no directory: hushcount keys passes makes one")
    # Without it, each request would fail.
    arithmetic()
    log_to_stderr("issuer")
    serve(
        IssuerSetup(
            settings=settings,
            keys=base / settings.keys,
            issued=base / settings.issued,
            rule=rule_of(settings, base),
            metrics_reader=bearer(settings.metrics_token, base),
        )
    )
