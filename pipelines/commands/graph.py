"""hushcount graph: a job's graph, built and looked through without an engine."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from pipelines.console.command_table import new_app
from pipelines.console.common import BEAM_SETTINGS, JsonOption, engine, out_console, reported, show_json
from pipelines.console.options import CampaignOption, PartyName
from pipelines.console.tables import show_table

if TYPE_CHECKING:
    from keys.roles import OpeningRole
    from pipelines.engine.runner import Engine
    from pipelines.graph.check import Checked
    from pipelines.handover.retired import RetiredBatch
    from pipelines.jobs.job import Job

app = new_app()


class JobName(str, Enum):
    """Which job's graph."""

    shuffle = "shuffle"
    analyze = "analyze"
    discover = "discover"


@app.command("graph", context_settings=BEAM_SETTINGS)
@reported
def graph(
    context: typer.Context,
    job: Annotated[JobName, typer.Argument(help="Whose graph to build.")],
    campaign: CampaignOption,
    input: Annotated[str, typer.Option(help="What the job would read.")],
    keys: Annotated[
        str | None,
        typer.Option("--keys", help="The job's keys, which its graph must not hold: a directory, or env:NAME."),
    ] = None,
    party: Annotated[PartyName, typer.Option(help="Whose graph of discover.")] = PartyName.both,
    wheel: Annotated[
        list[Path] | None,
        typer.Option(help="A package for the workers, once for each; if not given, those that are running."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", help="What the job would write to; a store if not given. Nothing is written."),
    ] = None,
    runner: Annotated[
        str,
        typer.Option("--runner", help="Beam runner to build it for; DataflowRunner translates it as Dataflow does."),
    ] = "PortableRunner",
    as_json: JsonOption = False,
) -> None:
    """Build a job's graph as it would be sent, run nothing, and refuse it if it holds a key or what no worker can load.

    Example: hushcount graph analyze --campaign words.json --input shuffled --keys keys --wheel a.whl --wheel b.whl
    """
    if (keys is None) != (job is JobName.shuffle):
        raise UsageError(
            "option --keys is not for shuffle, which has no key: leave it out"
            if keys
            else f"option --keys is missing: {job.value} opens reports, and its graph is searched for the keys"
        )
    if job is JobName.discover and party is PartyName.both:
        raise UsageError("option --party is both, must be aux-server or analyzer: each has a graph of its own")
    from pipelines.graph.build import NOWHERE, build
    from pipelines.graph.check import check, job_keys

    chosen = engine(context, runner)
    secrets = job_keys(keys, _roles(job, party), Campaign.read(campaign)) if keys else ()
    built = build(_planned(job, party, campaign, input, keys, out or NOWHERE), chosen)
    forbidden = ("keys", "analyzer", "aux_server") if job is JobName.shuffle else ()
    wheels = tuple(wheel or ())
    checked = check(built, secrets, wheels, forbidden)
    facts = _facts(job, chosen, checked, secrets, wheels)
    if as_json:
        show_json(facts)
    else:
        _show(facts)
    checked.require()


def _roles(job: JobName, party: PartyName) -> tuple[OpeningRole, ...]:
    return ("aux_server",) if job is JobName.discover and party is PartyName.aux_server else ("analyzer",)


def _planned(
    job: JobName, party: PartyName, campaign: Path, source: str, keys: str | None, out: str
) -> Job | RetiredBatch:
    if keys is None:
        from pipelines.jobs.shuffle import plan_shuffle

        return plan_shuffle(campaign, source, out)
    if job is JobName.analyze:
        from pipelines.jobs.analyze import plan_analyze

        return plan_analyze(campaign, source, keys, out)
    from pipelines.jobs.discover import plan_discover

    return plan_discover(campaign, source, keys, out, party=party.value, uncapped=True)


def _facts(
    job: JobName, chosen: Engine, checked: Checked, secrets: tuple[Any, ...], wheels: tuple[Path, ...]
) -> dict[str, Any]:
    from pipelines.graph.build import translates

    return {
        "job": job.value,
        "translated_by": chosen.runner if translates(chosen) else "Beam's portable form",
        "graph_bytes": checked.graph_bytes,
        "pickles_opened": checked.pickles,
        "opened_with": ", ".join(map(str, wheels)) or "the running packages",
        "packages_loaded": list(checked.packages),
        "keys_searched_for": [key.id for key in secrets],
        "steps": [
            {"step": step.name, "carries": list(step.carries), "problems": list(step.problems)}
            for step in checked.steps
        ],
        "problems": list(checked.problems),
    }


def _show(facts: dict[str, Any]) -> None:
    shown = [step for step in facts["steps"] if step["problems"] or not all(map(_beams, step["carries"]))]
    rows = [(step["step"], "\n".join(step["carries"]), "\n".join(step["problems"]) or "none") for step in shown]
    console, heads = out_console(), ("step", "carries", "problems")
    show_table(console, heads, rows, title=f"graph of {facts['job']}, {facts['translated_by']}", words=heads)
    console.print()
    keys = ", ".join(facts["keys_searched_for"]) or "none: this job has none"
    lines = (
        f"and {len(facts['steps']) - len(shown)} steps that carry functions of Beam's own, without a problem",
        f"{facts['graph_bytes']:,} bytes; {facts['pickles_opened']} pickles opened with {facts['opened_with']}",
        f"a worker loads {', '.join(facts['packages_loaded'])}",
        f"keys searched for: {keys}",
        *facts["problems"],
    )
    for line in lines:
        console.print(f"  {line}", soft_wrap=True, markup=False)


def _beams(name: str) -> bool:
    return name.partition(".")[0] in ("apache_beam", "builtins")
