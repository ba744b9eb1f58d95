"""hushcount evaluate: run the evaluator that a deployment file names, with the deployment's store."""

from __future__ import annotations

from functools import partial

from evaluator.app import serve
from evaluator.evaluator import EvaluatorSetup
from hushcount.errors import UsageError
from pipelines.deployment.settings import Deployment
from pipelines.files.storage import probe, write_durably
from service.authentication import authenticator, bearer
from service.logs import log_to_stderr


def evaluate(deployment: Deployment) -> None:
    """Answer requests for evaluations until SIGTERM or SIGINT comes.

    Raises:
        UsageError: there is no [evaluator] table, or its address, counts, keys, tokens or campaigns cannot be used.
        HushcountError: another evaluator uses the directory of counts, or the disk of this directory fails.
    """
    settings, evaluations = deployment.file.evaluator, deployment.folder("evaluations")
    if settings is None:
        raise UsageError(f"deployment file {deployment.path} has no [evaluator] table: add one with a name")
    keys = deployment.base / settings.keys
    if not keys.is_dir():
        raise UsageError(f"{keys} is not a key directory: hushcount keys new --role evaluator --out {keys} makes one")
    log_to_stderr("evaluator")
    serve(
        EvaluatorSetup(
            settings=settings,
            counts=deployment.base / settings.counts,
            campaigns=deployment.campaigns,
            keys=keys,
            evaluations=evaluations,
            tiling=deployment.windows.tiling,
            authenticator=authenticator(settings, deployment.base),
            verifier=bearer(settings.verifier_token, deployment.base),
            write_whole=partial(write_durably, evaluations),
            probe=partial(probe, evaluations),
            metrics_reader=bearer(settings.metrics_token, deployment.base),
        )
    )
