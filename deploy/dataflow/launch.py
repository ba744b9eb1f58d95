"""What Dataflow's flex templates start: it sends a job off, and a second call finishes it when the job is done.

    python launch.py --job=analyze --campaign=gs://... --input=gs://... --keys=... --out=gs://... BEAM OPTIONS
    python launch.py finish --job=analyze --campaign=gs://... --input=gs://... --keys=... --out=gs://...

A template's launcher ends before its job begins, and the jobs do something after it: they compare counts, estimate, and
mark the result as complete. `hushcount run` and the single commands wait for their job and need no second call.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from hushcount.campaign import Campaign
from hushcount.errors import HushcountError, NotYet, UsageError
from pipelines import storage
from pipelines.runner import Engine
from pipelines.staging import SUMMARY

JOBS = ("shuffle", "release", "reveal", "analyze")
_COUNTS = ".counts.json"


class Sent(BaseException):
    """The job is on its way; the rest is for later. No Exception: nothing may take it for a failure."""


@dataclass(frozen=True)
class Sender(Engine):
    """An engine that sends a job off and leaves it.

    Attributes:
        send: what is done with the pipeline.
    """

    send: Callable[[beam.Pipeline], Any] = beam.Pipeline.run

    @contextmanager
    def spill(self, directory: str) -> Iterator[str | None]:
        """Yield None: the job outlives this process, so its blocks go through the engine."""
        yield None

    @contextmanager
    def pipeline(self, job: str) -> Iterator[beam.Pipeline]:
        """Yield a pipeline; when the block ends, send it off and leave the job."""
        pipeline = beam.Pipeline(runner=self.runner, options=PipelineOptions(list(self.options)))
        yield pipeline
        self.send(pipeline)
        raise Sent


@dataclass(frozen=True)
class Finisher(Engine):
    """An engine for a job that has run: it fetches what the job wrote in the place of running it.

    Attributes:
        written: the job's output directory in the store.
        beside: local directory in which the result is put together.
    """

    written: str = ""
    beside: str = ""

    @contextmanager
    def pipeline(self, job: str) -> Iterator[beam.Pipeline]:
        """Yield a pipeline that nothing runs; when the block ends, fetch."""
        yield beam.Pipeline(runner="apache_beam.runners.portability.fn_api_runner.FnApiRunner")
        (staged,) = Path(self.beside).glob(f".*{storage.PARTIAL}")
        for path in storage.list_objects(self.written):
            storage.copy(path, str(staged / storage.relative(path, self.written)))


def main(arguments: list[str]) -> None:
    """Send a job off, or finish one."""
    finishing = arguments[:1] == ["finish"]
    asked, options = parsed(arguments[1:] if finishing else arguments)
    if asked.job != "shuffle" and not asked.keys:
        raise UsageError(f"option --keys is missing: {asked.job} opens reports")
    options = [option for option in options if option.partition("=")[0] != "--runner"]
    # Whatever else a launcher adds is Beam's; where the store is and as whom to reach it is said there.
    Engine(options=tuple(options))
    if finishing:
        finish(asked, tuple(options))
    else:
        if not any(option.startswith("--template_location") for option in options):
            raise UsageError(
                "option --template_location is missing: use a template's launcher, or the command hushcount"
            )
        send(asked, Sender("DataflowRunner", tuple(options)))


def parsed(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return a template's parameters, and what else the launcher gave: Beam's options."""
    parser = argparse.ArgumentParser(prog="launch.py", allow_abbrev=False)
    parser.add_argument("--job", required=True, choices=JOBS)
    for name in ("campaign", "input", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--keys")
    parser.add_argument("--dictionary")
    parser.add_argument("--sign-with", help="the party's signing key, as --keys: what finish hands on is signed")
    parser.add_argument("--signed-by", help="public.json of the party that wrote the input")
    return parser.parse_known_args(arguments)


def send(asked: argparse.Namespace, engine: Sender) -> None:
    """Send a job off; nothing is in its output yet."""
    with tempfile.TemporaryDirectory(prefix="hushcount-launch-") as scratch:
        try:
            run_job(asked, asked.out, scratch, engine)
        except Sent:
            return
    raise HushcountError("the job ended before it was sent: report this bug")


def finish(asked: argparse.Namespace, options: tuple[str, ...]) -> None:
    """Do what comes after a job, from what it wrote, and put the result beside that; its summary last.

    Raises:
        NotYet: the job has not written its counts.
        UsageError: it was finished before.
    """
    out = asked.out.rstrip("/")
    before = set(storage.list_objects(out))
    if f"{out}/{SUMMARY}" in before:
        raise UsageError(f"output directory {out} already holds a result: give another")
    if f"{out}/{_COUNTS}" not in before:
        raise NotYet(
            f"output directory {out} holds no counts: the job that writes there has not ended; try again later"
        )
    with tempfile.TemporaryDirectory(prefix="hushcount-finish-") as scratch:
        # Of the same name: by it the next party knows of which batch it is.
        result = Path(scratch) / "out" / out.rpartition("/")[2]
        engine = Finisher(options=options, written=out, beside=str(result.parent))
        run_job(asked, str(result), scratch, engine)
        made = {f"{out}/{path.relative_to(result)}": path for path in sorted(result.rglob("*")) if path.is_file()}
        summary = made.pop(f"{out}/{SUMMARY}")
        for path, local in made.items():
            if path not in before:
                storage.copy(str(local), path)
        for path in before - set(made):
            storage.remove(path)
        storage.copy(str(summary), f"{out}/{SUMMARY}")


def run_job(asked: argparse.Namespace, out: str, scratch: str, engine: Engine) -> None:
    """Call the job, with local copies of the campaign's files."""
    campaign = Path(scratch) / Path(asked.campaign).name
    storage.copy(asked.campaign, str(campaign))
    dictionary = Campaign.read(campaign).dictionary
    if asked.dictionary and dictionary is not None:
        storage.copy(asked.dictionary, str(campaign.parent / dictionary.path))
    if asked.job == "shuffle":
        from pipelines.shuffle import shuffle

        shuffle(campaign, asked.input, out, signer=_signer(asked, "shuffler"), engine=engine)
    elif asked.job == "analyze":
        from pipelines.analyze import analyze

        signed_by = _trusted(asked, "shuffler", scratch)
        analyze(campaign, asked.input, asked.keys, out, signed_by=signed_by, engine=engine)
    elif asked.job == "release":
        from pipelines.discover import discover

        signed_by, signer = _trusted(asked, "shuffler", scratch), _signer(asked, "aux_signer")
        discover(
            campaign,
            asked.input,
            asked.keys,
            out,
            party="aux-server",
            signed_by=signed_by,
            signer=signer,
            engine=engine,
        )
    else:
        from pipelines.discover import discover

        signed_by = _trusted(asked, "aux_signer", scratch)
        discover(campaign, asked.input, asked.keys, out, party="analyzer", signed_by=signed_by, engine=engine)


def _signer(asked: argparse.Namespace, role: str) -> Any:
    """Return the key that signs what is handed on, or None."""
    if not asked.sign_with:
        return None
    from keys.store import active_key

    return active_key(asked.sign_with, role)  # type: ignore[arg-type]


def _trusted(asked: argparse.Namespace, role: str, scratch: str) -> tuple[Any, ...]:
    """Return the keys by one of which the input must be signed; empty: signatures are not checked."""
    if not asked.signed_by:
        return ()
    from keys.store import verify_keys

    copy = Path(scratch) / "signed-by" / "public.json"
    storage.copy(asked.signed_by, str(copy))
    return verify_keys(copy, role)  # type: ignore[arg-type]


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except HushcountError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_status)
