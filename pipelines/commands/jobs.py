"""The jobs run by hand: encode, shuffle, analyze, discover, estimate; and the dead letters of a job."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Context, Option

from hushcount.campaigns.campaign import Stream
from hushcount.oracles.estimates import Levels
from pipelines.console import options
from pipelines.console.answer import Answer, progress_console
from pipelines.console.job_results import charged, found_lines, hop_answer, largest
from pipelines.console.tables import Table
from pipelines.handover.evaluator_address import evaluator_of
from pipelines.handover.parties import signer_of, verified_by

ShuffledOption = Annotated[str, Option("--input", help="Output directory of hushcount job shuffle.")]
LettersOption = Annotated[str, Option("--input", help="Output directory of shuffle, discover or analyze.")]


def encode(
    context: Context,
    campaign: options.CampaignFile,
    values: Annotated[Path, Option(help="One value a line, text or .gz.")],
    out: options.Out,
    clients: Annotated[
        bool, Option("--clients", help="Lines are client<TAB>value; without it, the cap cannot count.")
    ] = False,
    evaluator: Annotated[
        str | None, Option(help="For an oblivious campaign: the evaluator's key directory, or env:NAME.")
    ] = None,
    overwrite: options.Overwrite = False,
    runner: options.Runner = "FnApiRunner",
) -> Answer:
    """Use it to try a campaign on values that you have; in production, each app does this for its own value.

    Example: hushcount job encode --campaign words.json --values words.txt.gz --out encoded
    """
    from pipelines.jobs.encode import plan_encode
    from pipelines.jobs.job import run

    chosen, console = options.engine(context, runner), progress_console()
    named = evaluator_of(evaluator)
    job = plan_encode(campaign, values, out, clients=clients, evaluator=named, overwrite=overwrite, console=console)
    return hop_answer(run(job, chosen, console), out, stated=False)


def shuffle(
    context: Context,
    campaign: options.CampaignFile,
    input: Annotated[str, Option(help="Directory of envelopes, or a batch of hushcount run.")],
    out: options.Out,
    sign_with: options.SignWith = None,
    overwrite: options.Overwrite = False,
    runner: options.Runner = "FnApiRunner",
) -> Answer:
    """Use it as the shuffler, before analyze and discover. Exit status 3: the minimum batch is not reached.

    Example: hushcount job shuffle --campaign words.json --input encoded --out shuffled
    """
    from pipelines.jobs.job import run
    from pipelines.jobs.shuffle import plan_shuffle

    chosen, signer = options.engine(context, runner), signer_of(sign_with, "shuffler")
    job = plan_shuffle(campaign, input, out, signer=signer, overwrite=overwrite)
    return hop_answer(run(job, chosen, progress_console()), out, stated=False)


def analyze(
    context: Context,
    campaign: options.CampaignFile,
    input: ShuffledOption,
    keys: options.Keys,
    out: options.Out,
    items: options.Items = None,
    found: Annotated[
        Path | None, Option(help="Output directory of hushcount job discover: show its values too.")
    ] = None,
    confidence: options.Confidence = 0.95,
    false_positives: options.FalsePositives = 0.001,
    signed_by: options.SignedBy = None,
    ledger: options.Ledger = None,
    explain: options.Explain = False,
    overwrite: options.Overwrite = False,
    runner: options.Runner = "FnApiRunner",
) -> Answer:
    """Use it as the analyzer. Without --items it estimates the campaign's dictionary.

    Example: hushcount job analyze --campaign words.json --input shuffled --keys keys --out results
    """
    from pipelines.jobs.analyze import plan_analyze
    from pipelines.jobs.job import run

    levels, chosen = Levels(confidence, false_positives), options.engine(context, runner)
    job = plan_analyze(
        campaign,
        input,
        keys,
        out,
        items=items,
        found=found,
        levels=levels,
        signed_by=verified_by(signed_by, "shuffler"),
        ledger=ledger,
        overwrite=overwrite,
    )
    summary = run(job, chosen, progress_console())
    return hop_answer(summary, out, *largest(summary), *charged(summary), explain=explain)


def discover(
    context: Context,
    campaign: options.CampaignFile,
    input: ShuffledOption,
    keys: options.Keys,
    out: options.Out,
    party: options.Party = "both",
    uncapped: Annotated[
        bool, Option("--uncapped", help="Discover without client tokens: any client can then reveal a value.")
    ] = False,
    evaluator: Annotated[
        str | None,
        Option(help="For an oblivious campaign: the evaluator's address, or its key directory if that is here."),
    ] = None,
    evaluator_token: Annotated[
        str | None, Option(help="Bearer token for that address: a private file, env:NAME, or gcp-secret://...")
    ] = None,
    signed_by: options.SignedBy = None,
    sign_with: options.SignWith = None,
    ledger: options.Ledger = None,
    explain: options.Explain = False,
    overwrite: options.Overwrite = False,
    runner: options.Runner = "FnApiRunner",
) -> Answer:
    """Use it as the auxiliary server, then as the analyzer on the server's output; as both if you hold both keys.

    Example: hushcount job discover --campaign words.json --input shuffled --keys keys --out found
    """
    from pipelines.jobs.discover import plan_discover
    from pipelines.jobs.job import run

    chosen = options.engine(context, runner)
    job = plan_discover(
        campaign,
        input,
        keys,
        out,
        party=party,
        uncapped=uncapped,
        evaluator=evaluator_of(evaluator, evaluator_token),
        signed_by=verified_by(signed_by, "aux_signer" if party == "analyzer" else "shuffler"),
        signer=signer_of(sign_with, "aux_signer"),
        ledger=ledger,
        overwrite=overwrite,
    )
    summary = run(job, chosen, progress_console())
    return hop_answer(summary, out, *found_lines(summary), *charged(summary), explain=explain)


def estimate(
    campaign: options.CampaignFile,
    tally: Annotated[str, Option(help="tally.npz of hushcount job analyze.")],
    items: Annotated[Path, Option(help="File of items to estimate, one a line.")],
    out: options.Out,
    confidence: options.Confidence = 0.95,
    false_positives: options.FalsePositives = 0.001,
    explain: options.Explain = False,
    overwrite: options.Overwrite = False,
) -> Answer:
    """Use it to estimate further items after analyze: it reads no report and costs no privacy.

    Example: hushcount job estimate --campaign words.json --tally results/tally.npz --items new.txt --out more
    """
    from pipelines.jobs.results import estimate as job

    levels = Levels(confidence, false_positives)
    summary = job(campaign, tally, items, out, levels=levels, overwrite=overwrite)
    return hop_answer(summary, out, *largest(summary), explain=explain)


def list_dead_letters(
    input: LettersOption, reason: Annotated[str | None, Option(help="Only reports of this reason.")] = None
) -> Answer:
    """Use it when a summary counts rejected reports: it explains each reason. It shows no report's content.

    Example: hushcount repair dead-letters --input results
    """
    from pipelines.jobs.dead_letters import CURES
    from pipelines.jobs.dead_letters import list_dead_letters as job

    letters = [letter for letter in job(input) if reason in (None, letter.reason)]
    heads = ("hop", "stream", "reason", "reports", "bytes each", "what it means")
    rows = [
        (one.hop, one.stream, one.reason, f"{one.records:,}", f"{one.record_bytes:,}", CURES.get(one.reason, ""))
        for one in letters
    ]
    # A reason has several letters, one for each length of reports, and each states all lost reports: count them once.
    lost = sum({(one.stream, one.reason): one.not_kept for one in letters}.values())
    warning = f"{lost:,} reports were not kept: summary.json counts them, and they cannot be replayed"
    table = Table("dead letters", heads, rows, words=("what it means",))
    return Answer([asdict(letter) for letter in letters], [table, *([warning] if lost else [])])


def replay(
    input: LettersOption,
    campaign: Annotated[Path, Option(help="Campaign file with which clients made the reports.")],
    reason: Annotated[str, Option(help="wrong_campaign or not_opened.")],
    out: Annotated[str, Option(help="Output directory, for analyze or discover to read.")],
    stream: Annotated[Stream, Option(help="Which stream.")] = "reports",
    overwrite: options.Overwrite = False,
) -> Answer:
    """Use it when you have the right campaign file or key. Then run analyze or discover on its output.

    Example: hushcount repair replay --input results --campaign c.json --reason not_opened --out again
    """
    from pipelines.jobs.dead_letters import replay as job

    return hop_answer(job(campaign, input, stream, reason, out, overwrite=overwrite), out, stated=False)
