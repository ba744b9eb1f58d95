"""What a run reads before it decides: the logs, what collectors stored, and what bears witness of lost entries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from hushcount.errors import HushcountError
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment, Party
from pipelines.files.storage_errors import told
from pipelines.log.fold import Fold
from pipelines.log.log import Logs
from pipelines.log.restoring import replace_log
from pipelines.log.witnesses import Beside, beside_logs, missing_of
from pipelines.schedule.done import Done
from pipelines.schedule.work import Vouched
from pipelines.windows.closing import Listed
from pipelines.windows.intake import intake_of, taken_in
from pipelines.windows.rules import calendar_of
from pipelines.windows.stored import Stored, stored_files


def looked(
    deployment: Deployment, logs: Logs, campaigns: Sequence[Epochs], done: Done
) -> tuple[list[Epochs], dict[str, tuple[Listed, ...]], Stored]:
    """Read the logs and list the segments; return the campaigns of which both could be done, and what was found."""
    folds: dict[str, Fold] = {}
    listed: dict[str, tuple[Listed, ...]] = {}
    for campaign in (epochs.campaign for epochs in campaigns):
        try:
            folds[campaign] = logs.read(campaign)
        except Exception as error:
            done.problems.append(f"{campaign}: {told(error)}")
    if "shuffler" not in deployment.file.parties:
        return [epochs for epochs in campaigns if epochs.campaign in folds], {}, {}
    stored = stored_files(deployment)
    for campaign, fold in folds.items():
        try:
            intake = intake_of(deployment, fold, stored.get(campaign, ()))
            done.problems += intake.problems
            listed[campaign] = intake.listed
        except Exception as error:
            done.problems.append(f"{campaign}: {told(error)}")
    return [epochs for epochs in campaigns if epochs.campaign in listed], listed, stored


def whole(
    deployment: Deployment,
    logs: Logs,
    vouched: Vouched,
    campaigns: Sequence[Epochs],
    listed: dict[str, tuple[Listed, ...]],
    present: datetime,
    done: Done,
) -> dict[str, dict[Party, Beside]]:
    """Return what lies beside the logs, by party, of each campaign with logs that lack nothing of which that speaks.

    Logs that lack something are replaced, if the operator says that they are lost.
    """
    names, found = [epochs.campaign for epochs in campaigns], dict[str, dict[Party, Beside]]()
    there = {party: beside_logs(deployment, party, names) for party in deployment.file.parties}
    for campaign in names:
        try:
            for log in [logs.of(party, campaign) for party in deployment.file.parties]:
                while missing := missing_of(deployment, log, there[log.party][campaign]):
                    if not vouched.log_was_restored:
                        raise HushcountError(missing.says(log))
                    manifests = map(taken_in, listed.get(campaign, ()) if log.party == "shuffler" else ())
                    named = calendar_of(deployment, log.fold).named
                    if (said := replace_log(deployment, log, missing, manifests, named, present)) is not None:
                        done.dropped.append(said)
            found[campaign] = {party: beside[campaign] for party, beside in there.items()}
        except Exception as error:
            done.stopped.append(campaign)
            done.problems.append(f"{campaign}: {told(error)}")
    return found
