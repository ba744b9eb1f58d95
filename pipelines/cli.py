"""The command line of Hushcount: the table of its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.console.command_table import Row, new_app

SUMMARY = "Learn what people use and how often, without learning who."
PUBLISH = Row("publish", "Let collectors and clients use a campaign file from some time on.", "epochs:publish_epoch")
CAMPAIGN = (
    Row("new", "Write a campaign file, validated and with a fingerprint.", "campaign:new_campaign"),
    Row("show", "Check a campaign file and show its contents.", "campaign:show_campaign"),
    Row("sign", "Sign a campaign file as its operator, or as a publisher.", "vouching:sign_campaign"),
    PUBLISH,
    Row("review", "List the values that discovery found, and approve or reject them.", "epochs:review"),
    Row("layers", "Show which campaigns ask which part of the clients.", "epochs:layers"),
    Row("policy", "Write the policy by which an app's clients check a campaign.", "vouching:write_policy"),
    Row("redact", "Write a campaign file without the key of the discovery hash.", "campaign:redact_campaign"),
    Row("delegate", "Let a publisher's key sign epochs with a new dictionary.", "vouching:delegate"),
    Row("restart", "Set clients back to a campaign file, after a publisher's key was stolen.", "vouching:restart"),
    Row("verify", "Check the operator's signature of a campaign file.", "vouching:verify_campaign_file"),
    Row("audit", "Compare copies of a campaign's history from several places.", "audit:audit_campaign"),
    Row("schema", "Print the JSON Schema of campaign files.", "campaign:schema"),
)
KEYS = (
    Row("new", "Make the key pairs of the analyzer and the auxiliary server, or of another role.", "keys:new_keys"),
    Row("list", "Show states, dates, ids and public keys.", "keys:list_keys"),
    Row("rotate", "Make the next keys, for the campaign of the next epoch.", "keys:rotate_keys"),
    Row("retire", "Destroy a private key: nobody can open its reports again.", "keys:retire_key"),
    Row("passes", "Make the issuer's keys, by which clients show that they may report.", "keys:pass_keys"),
    Row("rehearse", "Prove that the parties can open the reports of a campaign's clients.", "keys:rehearse_keys"),
)
LEDGER = (
    Row("set", "Set the most that a campaign may spend.", "ledger:set_limit"),
    Row("show", "Show what each campaign has spent, and each charge.", "ledger:show"),
    Row("check", "Check that a ledger is not damaged and its sums are right.", "ledger:check"),
    Row("confirm", "Confirm that this machine's clock is right, so that budgets renew.", "ledger:confirm"),
    Row("export", "Write all charges to a file.", "ledger:export"),
)
SHUFFLE = Row("shuffle", "Cap each client, strip all metadata, drop duplicates, permute.", "jobs:shuffle")
JOB = (
    Row("encode", "Randomise and seal a file of values, as apps do.", "jobs:encode"),
    SHUFFLE,
    Row("discover", "Find unknown values that enough clients sent.", "jobs:discover"),
    Row("analyze", "Open, check and count shuffled reports, and estimate items.", "jobs:analyze"),
    Row("estimate", "Estimate more items from a stored tally.", "jobs:estimate"),
    Row("stream", "Keep a job running on an engine, for the hops that runs order.", "stream:stream"),
)
ASK = (
    Row("top", "Show the most frequent items.", "ask:top"),
    Row("item", "Show how often items were used, window by window, with errors.", "ask:item"),
    Row("sum", "Add up items, with the error of the sum.", "ask:sum_"),
    Row("change", "Show what rose and what fell between windows.", "ask:change"),
    Row("compare", "Show where two campaigns or results differ.", "ask:compare"),
    Row("total", "Add up windows, with the error of the total.", "ask:total"),
    Row("mean", "Show the mean of numbers, and how it changed.", "ask_numbers:mean"),
    Row("quantile", "Show the median and other percentiles of numbers.", "ask_numbers:quantile"),
    Row("histogram", "Show how many numbers are in each bin.", "ask_numbers:histogram"),
    Row("new", "Show discovered values, the time of discovery, and later counts.", "ask:new"),
)
REPAIR = (
    Row("dead-letters", "List the kept reports that a job rejected, by reason.", "jobs:list_dead_letters"),
    Row("replay", "Make a batch of the reports rejected for one reason, to read them again.", "jobs:replay"),
    Row("segments", "Write a manifest for segments of past windows that no manifest lists.", "repair:relist_segments"),
)
HUSHCOUNT = {
    "Start": (
        Row("init", "Make a deployment for one machine, ready to run.", "init:init"),
        Row("demo", "Run the whole system on example data, and show what each party saw.", "demo:demo"),
        Row("send", "Report values to a collector, as an app does.", "send:send"),
    ),
    "Operate": (
        Row("collect", "Take sealed reports over HTTP, and store them by window.", "operate:collect"),
        Row("evaluate", "Answer clients' blinded elements with the key of an epoch.", "operate:evaluate"),
        Row("issue", "Sign the passes of clients that may report.", "operate:issue"),
        Row("run", "Close due windows; shuffle, discover and analyze them.", "operate:run"),
        Row("status", "Show how many reports were counted, wait, or were rejected.", "status:status"),
        Row("campaign", "Make, sign, publish and check campaign files.", CAMPAIGN, "show --campaign words.json"),
        Row("keys", "Make, list, rotate, rehearse and retire key pairs.", KEYS, "list --keys keys"),
        Row("ledger", "Set, show, check and export what releases cost.", LEDGER, "show"),
        Row("job", "Run one job by hand, or keep one running on an engine.", JOB, "shuffle --help"),
    ),
    "Ask": (
        Row("ask", "Show what is used, what changed, and how sure that is.", ASK, "top"),
        Row("dashboard", "Write or serve one page: trends, changes, budget.", "dashboard:dashboard"),
    ),
    "Plan": (
        Row("plan", "Compare all mechanisms by error, size and cost.", "plan:plan"),
        Row("privacy", "Show the epsilon of shuffled reports.", "privacy:privacy"),
        Row("simulate", "Simulate collections of your values.", "simulate:simulate"),
    ),
    "Repair": (
        Row("doctor", "Check keys, clocks, storage, disks, campaigns and numbers.", "repair:doctor"),
        Row("repair", "Read rejected reports again; list lost segments.", REPAIR, "segments"),
    ),
}
"""The commands, grouped by the people who use them."""
MORE = """
A command reads deployment.toml in the working directory. For another file, give -c FILE or set HUSHCOUNT_CONFIG. If the
deployment has several campaigns, give --campaign ID too.

Each command says more with --help, and has an example.

\b
Example: hushcount init --help
"""


def _version(wanted: bool) -> None:
    if wanted:
        from hushcount import __version__

        typer.echo(__version__)
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


app = new_app(SUMMARY, HUSHCOUNT, _options, MORE)
