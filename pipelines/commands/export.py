"""hushcount export: make the data set of estimates for SQL and notebooks again, or of results made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from pipelines.console import options
from pipelines.console.answer import Answer, note

if TYPE_CHECKING:
    from pipelines.deployment.settings import Deployment


def export(
    config: Annotated[Path | None, Option("--config", help="Deployment file, .toml or .json.")] = None,
    campaign: Annotated[
        str | None, Option("--campaign", help="Id of the only campaign; with --result its campaign file.")
    ] = None,
    result: Annotated[list[str] | None, Option(help="Directory of hushcount analyze; may be repeated.")] = None,
    window: Annotated[
        str | None, Option(help="When the reports of --result came, as in 20261121T000000Z.", show_default="its own")
    ] = None,
    length: Annotated[str | None, Option(help="How long that window is, as in 1h or 1d.")] = None,
    out: Annotated[str | None, Option(help="Directory of the data set, with --result.")] = None,
) -> Answer:
    """Use it after you changed results by hand: hushcount run keeps the data set of a store, its folder estimates.

    For results without a deployment: hushcount export --campaign c.json --result results --window W --out estimates.

    Example: hushcount export --config deployment.toml
    """
    if result:
        if config is not None or campaign is None or out is None:
            raise UsageError("option --result needs --campaign FILE and --out DIRECTORY, and takes no --config")
        return _by_hand(Campaign.read(campaign), result, window, length, out)
    if config is None or out is not None or window is not None or length is not None:
        raise UsageError("give --config FILE, or --result DIRECTORY with --campaign FILE and --out DIRECTORY")
    from pipelines.deployment.settings import Deployment

    return _of_store(Deployment.read(config), campaign)


def _of_store(deployment: Deployment, campaign: str | None) -> Answer:
    from pipelines.deployment.campaigns import read_epochs
    from pipelines.exports.store import export as write_all
    from pipelines.log.log import Logs

    campaigns, faults = read_epochs(deployment.campaigns)
    if campaign is not None:
        known = [epochs.campaign for epochs in campaigns]
        if campaign not in known:
            raise UsageError(
                faults.get(campaign) or f"campaign is {campaign!a}, must be one of {', '.join(known) or 'none'}"
            )
        campaigns, faults = [epochs for epochs in campaigns if epochs.campaign == campaign], {}
    problems = [f"{name}: {fault}" for name, fault in faults.items()]
    written: list[str] = []
    logs = Logs(deployment)
    for epochs in campaigns:
        windows = logs.read(epochs.campaign).known_windows
        paths, wrong = write_all(deployment, epochs, windows, lambda batch: note(f"{batch.campaign}/{batch.name}"))
        written += paths
        problems += wrong
    return _answer(written, problems)


def _by_hand(campaign: Campaign, results: list[str], window: str | None, length: str | None, out: str) -> Answer:
    from hushcount.collection.windows import window_start
    from pipelines.exports.store import write
    from pipelines.exports.table import Result
    from pipelines.files import storage
    from pipelines.outputs.received_summary import read_summary
    from pipelines.outputs.staging import SUMMARY

    lasts = None if length is None else options.span("--length", length)
    if window is not None and len(results) > 1:
        raise UsageError("option --window is of one result: give --result once")
    written, taken = [], set()
    for directory in results:
        storage.require_directory(directory, "result")
        name = window or read_summary(storage.join(directory, SUMMARY)).window
        if name is None:
            raise UsageError(f"result {directory} names no window: give --window, as in 20261121T000000Z")
        try:
            start = window_start(name)
        except ValueError as error:
            raise UsageError(str(error)) from None
        one = Result(directory, campaign, name, None if lasts is None else start + lasts)
        # Two results of one window and campaign file would be one file: the second would replace the first.
        if one.file_name in taken:
            raise UsageError(f"result {directory} is of a window that another one is of: give each its own --window")
        taken.add(one.file_name)
        path = write(one, out)
        if path is None:
            raise UsageError(f"result {directory} has no tally: nothing can be exported from it")
        written.append(path)
    return _answer(written, [])


def _answer(written: list[str], problems: list[str]) -> Answer:
    said = [f"{len(written):,} files written", *written[:1], *(["..."] if len(written) > 1 else [])]
    return Answer({"written": written, "problems": problems}, said, "; ".join(problems))
