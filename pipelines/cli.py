"""The command line of Hushcount."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.console.command_table import Commands, Row, new_app


class Epoch(Commands):
    """The commands of `hushcount epoch`."""

    rows = (
        Row(
            "publish",
            "Let collectors and clients use a campaign file from a moment on; the epoch before ends then.",
            "pipelines.commands.epoch_publish",
        ),
        Row(
            "review",
            "List the found values that wait for a decision, with the windows that show them; approve or reject some.",
            "pipelines.commands.epoch_review",
        ),
    )


class Hushcount(Commands):
    """The commands of `hushcount`."""

    rows = (
        Row("encode", "Privatise and seal a file of values, as the values' owners would.", "pipelines.commands.encode"),
        Row(
            "shuffle",
            "Cap each client, strip all metadata, drop duplicates, permute; exit status 3 below the minimum batch.",
            "pipelines.commands.shuffle",
        ),
        Row(
            "analyze",
            "Open, check and tally permuted reports, and estimate the dictionary or the given items.",
            "pipelines.commands.analyze",
        ),
        Row("estimate", "Ask a stored tally again, for other items.", "pipelines.commands.estimate"),
        Row(
            "adjust",
            "Add a column of counts that are not negative or add up, and biased for it; the counts stay as they are.",
            "pipelines.commands.adjust",
        ),
        Row(
            "discover",
            "Find unknown values that enough clients sent: the auxiliary server's job, then the analyzer's.",
            "pipelines.commands.discover",
        ),
        Row(
            "demo",
            "Run the whole system on real input and show what each party did, saw and could not see.",
            "pipelines.commands.demo",
        ),
        Row(
            "plan",
            "Compare all mechanisms by exact error, size and cost, and name the best.",
            "pipelines.commands.plan",
        ),
        Row(
            "simulate",
            "Encode, tally and estimate values again and again, in memory, and compare with prediction and "
            "lower bound.",
            "pipelines.commands.simulate",
        ),
        Row(
            "stream",
            "Watch a collector's segments; shuffle and analyze each window once, when it closes. Ctrl-C ends it.",
            "pipelines.commands.stream",
        ),
        Row(
            "privacy",
            "Say what epsilon shuffled reports have, or how many clients it takes to discover an item.",
            "pipelines.commands.privacy",
        ),
        Row(
            "reproduce",
            "Run the papers' experiments and judge each. Finished figures are kept; a killed run goes on where it was.",
            "pipelines.commands.reproduce",
        ),
        Row(
            "bench",
            "Measure stages, each in a process of its own, beside the cryptography alone.",
            "pipelines.commands.bench",
        ),
        Row(
            "collect",
            "Take sealed reports over HTTP, keep them durably, and hand them on to the store window by window.",
            "pipelines.commands.collect",
        ),
        Row(
            "run",
            "Close the windows that are due, and shuffle, discover and analyze their batches; what is done "
            "is not done again.",
            "pipelines.commands.run",
        ),
        Row(
            "status",
            "Show what became of every report, by number; exit status 1 where two numbers do not agree.",
            "pipelines.commands.status",
        ),
        Row(
            "doctor",
            "Check keys, clocks, storage, disks, campaigns, numbers, and say what to do; exit status 1 "
            "where something is bad.",
            "pipelines.commands.doctor",
        ),
        Row(
            "trend",
            "Show how often items were used, window by window, each count with its error.",
            "pipelines.commands.trend",
        ),
        Row(
            "graph",
            "Build a job's graph as it would be sent, run nothing, and refuse it if it holds a key or what "
            "no worker can load.",
            "pipelines.commands.graph",
        ),
        Row("keys", "Make, rotate, retire, list and rehearse key pairs.", "pipelines.commands.keys"),
        Row("campaign", "Make, show, sign and describe campaign files.", "pipelines.commands.campaign"),
        Row("design", "List and search the designs of the mechanism wss.", "pipelines.commands.design"),
        Row("ledger", "Set, show, check and export what releases cost.", "pipelines.commands.ledger"),
        Row("epoch", "Publish what is collected from when on.", Epoch),
        Row("dead-letters", "List and replay what a hop did not pass on.", "pipelines.commands.dead_letters"),
        Row("segments", "What collectors stored: list again what no manifest lists.", "pipelines.commands.segments"),
    )


app = new_app("Learn what people use and how often, without learning who.", Hushcount)


def _version(wanted: bool) -> None:
    if wanted:
        from hushcount import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it and exit.")
    ] = False,
) -> None:
    """Learn what people use and how often, without learning who."""
