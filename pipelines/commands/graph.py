"""hushcount graph: a job's graph, built and searched without an engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.console import RenderableType
from typer import Argument, Context, Option

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import HushcountError, UsageError
from pipelines.console import options
from pipelines.console.answer import Answer
from pipelines.console.tables import Table

if TYPE_CHECKING:
    from keys.roles import OpeningRole
    from pipelines.handover.retired import RetiredBatch
    from pipelines.jobs.job import Job

JobName = Literal["shuffle", "analyze", "discover"]


def graph(
    context: Context,
    job: Annotated[JobName, Argument(help="Job to build the graph of.")],
    campaign: options.CampaignFile,
    input: Annotated[str, Option(help="Input of the job.")],
    keys: Annotated[str | None, Option(help="Keys to search the graph for: a directory, or env:NAME.")] = None,
    party: options.Party = "both",
    wheel: Annotated[
        list[Path] | None, Option(help="Package for workers; may be repeated.", show_default="the running ones")
    ] = None,
    out: Annotated[str | None, Option(help="Output; nothing is written.", show_default="a store")] = None,
    runner: Annotated[str, Option(help="Beam runner; DataflowRunner translates as Dataflow does.")] = "PortableRunner",
) -> Answer:
    """Use it before you send a job to an engine. Exit status 1: the graph holds a key, or what no worker can load.

    Example: hushcount graph analyze --campaign words.json --input shuffled --keys keys --wheel a.whl --wheel b.whl
    """
    if (keys is None) != (job == "shuffle"):
        raise UsageError(
            "option --keys is not for shuffle, which has no key: leave it out"
            if keys
            else f"option --keys is missing: {job} opens reports, and its graph is searched for the keys"
        )
    if job == "discover" and party == "both":
        raise UsageError("option --party is both, must be aux-server or analyzer: each has a graph of its own")
    from pipelines.graph.build import NOWHERE, build, translates
    from pipelines.graph.check import check, job_keys

    chosen = options.engine(context, runner)
    role: OpeningRole = "aux_server" if job == "discover" and party == "aux-server" else "analyzer"
    secrets = job_keys(keys, (role,), Campaign.read(campaign)) if keys else ()
    built = build(_planned(job, party, campaign, input, keys, out or NOWHERE), chosen)
    wheels = tuple(wheel or ())
    checked = check(built, secrets, wheels, ("keys", "analyzer", "aux_server") if job == "shuffle" else ())
    facts = {
        "job": job,
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
    try:
        checked.require()
    except HushcountError as error:
        return Answer(facts, _shown(facts), str(error))
    return Answer(facts, _shown(facts))


def _planned(
    job: JobName, party: options.PartyName, campaign: Path, source: str, keys: str | None, out: str
) -> Job | RetiredBatch:
    if keys is None:
        from pipelines.jobs.shuffle import plan_shuffle

        return plan_shuffle(campaign, source, out)
    if job == "analyze":
        from pipelines.jobs.analyze import plan_analyze

        return plan_analyze(campaign, source, keys, out)
    from pipelines.handover.evaluator import UNASKED
    from pipelines.jobs.discover import plan_discover

    return plan_discover(campaign, source, keys, out, party=party, uncapped=True, evaluator=UNASKED)


def _shown(facts: dict[str, Any]) -> Iterator[RenderableType]:
    shown = [step for step in facts["steps"] if step["problems"] or not all(map(_beams, step["carries"]))]
    rows = [(step["step"], "\n".join(step["carries"]), "\n".join(step["problems"]) or "none") for step in shown]
    heads = ("step", "carries", "problems")
    yield Table(f"graph of {facts['job']}, {facts['translated_by']}", heads, rows, words=heads)
    yield f"  and {len(facts['steps']) - len(shown)} steps that carry functions of Beam's own, without a problem"
    yield f"  {facts['graph_bytes']:,} bytes; {facts['pickles_opened']} pickles opened with {facts['opened_with']}"
    yield f"  a worker loads {', '.join(facts['packages_loaded'])}"
    yield f"  keys searched for: {', '.join(facts['keys_searched_for']) or 'none: this job has none'}"
    for problem in facts["problems"]:
        yield f"  {problem}"


def _beams(name: str) -> bool:
    return name.partition(".")[0] in ("apache_beam", "builtins")
