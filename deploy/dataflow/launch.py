"""The program of Dataflow's flex templates: the first call launches a job, and a second call finishes it afterwards.

    python launch.py --job=analyze --campaign=gs://... --input=gs://... --keys=... --signed_by=gs://... --out=gs://...
    python launch.py finish --job=analyze, and the same options

All other options are options for Beam. A graph is not sent if it holds a private key, or anything that no worker can
load.

A template's launcher ends before its job begins, but some work comes after the job: comparing counts, estimating,
signing outputs (--sign_with), and marking the result as complete. `hushcount run` and the single commands wait for
their job, so they need no second call.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from graph_check import check

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import HushcountError, NotYet, UsageError
from pipelines.engine.runner import Engine
from pipelines.files import storage
from pipelines.handover.parties import signer_of, verified_by
from pipelines.handover.retired import RetiredBatch, account_retired
from pipelines.jobs.job import Job, Place, run
from pipelines.outputs.staging import BY_HAND, SUMMARY, Writer

if TYPE_CHECKING:
    from keys.private import Guarded
    from keys.roles import OpeningRole, SigningRole

JOBS = ("shuffle", "release", "reveal", "analyze")
_SIGNERS: Mapping[str, SigningRole] = {"shuffle": "shuffler", "release": "aux_signer"}
"""The role with which a job signs its output."""
_WRITERS: Mapping[str, SigningRole] = {"release": "shuffler", "reveal": "aux_signer", "analyze": "shuffler"}
"""The role that signed a job's input."""
_OPENERS: Mapping[str, OpeningRole] = {"release": "aux_server", "reveal": "analyzer", "analyze": "analyzer"}
"""The role with which a job opens its input."""
_UNOPENED = ("keys", "analyzer", "aux_server")
"""Packages that no step of a job without a key may load."""
_COUNTS = ".counts.json"


@dataclass(frozen=True)
class Finisher(Engine):
    """An engine for a job that has run: instead of running the job, it fetches the job's output.

    Attributes:
        written: the folder that the job wrote, in its output directory in the store.
        beside: local directory in which the result is assembled.
    """

    written: str = ""
    beside: str = ""

    @contextmanager
    def pipeline(self, job: str) -> Iterator[beam.Pipeline]:
        """Yield a pipeline that is never run; when the block ends, fetch the output."""
        yield beam.Pipeline(runner="apache_beam.runners.portability.fn_api_runner.FnApiRunner")
        (staged,) = Path(self.beside).glob(f".*{storage.PARTIAL}/*")
        for path in storage.list_objects(self.written):
            storage.copy(path, str(staged / storage.relative(path, self.written)))


def main(arguments: list[str]) -> None:
    """Launch a job, or finish one."""
    finishing = arguments[:1] == ["finish"]
    asked, options = parsed(arguments[1:] if finishing else arguments)
    for option, why in _needed(asked.job, finishing).items():
        if not getattr(asked, option):
            raise UsageError(f"option --{option} is missing: {why}")
    options = [option for option in options if option.partition("=")[0] != "--runner"]
    # Further options of a launcher are options for Beam, such as the location of the store and the account for the
    # store.
    Engine(options=tuple(options))
    if finishing:
        finish(asked, tuple(options))
    else:
        if not any(option.startswith("--template_location") for option in options):
            raise UsageError(
                "option --template_location is missing: launch from a flex template, or use the command hushcount"
            )
        built(asked, "DataflowRunner", tuple(options)).run()


def _needed(job: str, finishing: bool) -> dict[str, str]:
    """Return a job's required options, each with the reason. Batches that are not signed need `hushcount` instead."""
    needed = {}
    if job in _WRITERS:
        needed |= {
            "keys": f"{job} opens reports",
            "signed_by": f"{job} reads only input that the {_WRITERS[job]} signed: set the path of its public.json",
        }
    if finishing and job in _SIGNERS:
        needed["sign_with"] = f"the output of {job} is signed: set the key of the {_SIGNERS[job]}"
    return needed


def parsed(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return a template's parameters; and all other arguments, which are options for Beam."""
    parser = argparse.ArgumentParser(prog="launch.py", allow_abbrev=False)
    parser.add_argument("--job", required=True, choices=JOBS)
    for name in ("campaign", "input", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--keys")
    parser.add_argument("--dictionary")
    parser.add_argument("--signed_by", help="public.json of the party that wrote the input")
    parser.add_argument("--sign_with", help="the party's key with which finish signs the output, as --keys")
    parser.add_argument("--evaluator", help="for an oblivious campaign: as in hushcount job discover")
    parser.add_argument("--evaluator_token", help="bearer token for the evaluator: gcp-secret://NAME")
    parser.add_argument("--uncapped", choices=("true", "false"), default="false", help="as in hushcount job discover")
    return parser.parse_known_args(arguments)


def built(asked: argparse.Namespace, runner: str, options: tuple[str, ...]) -> beam.Pipeline:
    """Return a pipeline with the graph of a job; it has not written any output.

    Raises:
        HushcountError: the graph holds a private key, or something that a worker cannot load.
    """
    with tempfile.TemporaryDirectory(prefix="hushcount-launch-") as scratch:
        job = planned(asked, asked.out, scratch)
        if isinstance(job, RetiredBatch):
            account_retired(job)
        pipeline = beam.Pipeline(runner=runner, options=PipelineOptions(list(options)))
        # The job outlives this process, so its blocks go through the engine, and not through local files.
        job.graph(pipeline, Place(storage.join(asked.out, BY_HAND.new_folder())))
        forbidden = () if asked.job in _OPENERS else _UNOPENED
        check(pipeline.to_runner_api(), _secrets(asked, job.campaign), forbidden).require()
        return pipeline


def _secrets(asked: argparse.Namespace, campaign: Campaign) -> tuple[Guarded, ...]:
    """Return the keys that no graph may hold: all keys of a key directory, or the key with which the job opens."""
    if asked.job not in _OPENERS:
        return ()
    from keys.directories import campaign_key, private_keys

    role = _OPENERS[asked.job]
    own = campaign_key(asked.keys, role, getattr(campaign.keys, role)).read()
    return private_keys(Path(asked.keys)) if Path(asked.keys).is_dir() else (own,)


def finish(asked: argparse.Namespace, options: tuple[str, ...]) -> None:
    """Do the work that comes after a job, and write the result beside the job's output, the summary last.

    Raises:
        NotYet: the job has not written its counts.
        UsageError: the job was finished before.
    """
    out = asked.out.rstrip("/")
    before = set(storage.list_objects(out))
    if f"{out}/{SUMMARY}" in before:
        raise UsageError(f"output directory {out} already holds a result: use another directory")
    counted = sorted(path for path in before if path.endswith(f"/{_COUNTS}"))
    if not counted:
        raise NotYet(
            f"output directory {out} holds no counts: the job that writes it has not ended, so try again later"
        )
    with tempfile.TemporaryDirectory(prefix="hushcount-finish-") as scratch:
        # The local directory has the same name as the output directory, because the next party reads the batch's name
        # from it.
        result = Path(scratch) / "out" / out.rpartition("/")[2]
        # A job that was launched twice has written two folders. Each folder is complete, so the first is used.
        folder = counted[0].split("/")[-2]
        engine = Finisher(options=options, written=storage.join(out, folder), beside=str(result.parent))
        run(planned(asked, str(result), scratch, Writer(folder=folder)), engine)
        made = {f"{out}/{path.relative_to(result)}": path for path in sorted(result.rglob("*")) if path.is_file()}
        summary = made.pop(f"{out}/{SUMMARY}")
        for path, local in made.items():
            if path not in before:
                storage.copy(str(local), path)
        for path in before - set(made):
            storage.remove(path)
        storage.copy(str(summary), f"{out}/{SUMMARY}")


def planned(asked: argparse.Namespace, out: str, scratch: str, writer: Writer = BY_HAND) -> Job | RetiredBatch:
    """Plan the job, with local copies of the campaign's files."""
    campaign = Path(scratch) / Path(asked.campaign).name
    storage.copy(asked.campaign, str(campaign))
    dictionary = Campaign.read(campaign).dictionary
    if asked.dictionary and dictionary is not None:
        storage.copy(asked.dictionary, str(campaign.parent / dictionary.path))
    signer = signer_of(asked.sign_with, _SIGNERS[asked.job]) if asked.job in _SIGNERS else None
    signed_by = verified_by(_fetched(asked.signed_by, scratch), _WRITERS[asked.job]) if asked.job in _WRITERS else ()
    if asked.job == "shuffle":
        from pipelines.jobs.shuffle import plan_shuffle

        return plan_shuffle(campaign, asked.input, out, signer=signer, writer=writer)
    if asked.job == "analyze":
        from pipelines.jobs.analyze import plan_analyze

        return plan_analyze(campaign, asked.input, asked.keys, out, signed_by=signed_by, writer=writer)
    from pipelines.handover.evaluator_address import evaluator_of
    from pipelines.jobs.discover import plan_discover

    return plan_discover(
        campaign,
        asked.input,
        asked.keys,
        out,
        party="aux-server" if asked.job == "release" else "analyzer",
        uncapped=asked.uncapped == "true",
        evaluator=evaluator_of(asked.evaluator, asked.evaluator_token),
        signed_by=signed_by,
        signer=signer,
        writer=writer,
    )


def _fetched(path: str, scratch: str) -> Path:
    """Return a local copy of a party's public.json."""
    copy = Path(scratch) / "signed-by" / "public.json"
    storage.copy(path, str(copy))
    return copy


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except HushcountError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_status)
