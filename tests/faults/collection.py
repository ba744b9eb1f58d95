"""A collection that every job has worked on undisturbed, commands that work on it again, and what they must come to."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen

import numpy as np

from deploy.flink.cluster import ended_with_us
from hushcount.discovery.pairs import HASH_BYTES
from tests.support.jobs import Chain, files_under, found, new_campaign, new_keys, summary, values_of, write_lines
from tests.support.records import as_set, read_rows

LISTED = {"alpha": 50_000, "beta": 30_000, "gamma": 20_000}
POPULAR = {"plantedsecret": 900, "zweiter Fund": 700}
"""Values outside the dictionary that so many send that the keep rule keeps them for certain."""
BORDERLINE = 60
"""How many further values are sent so often that each is kept with a probability near one half: a draw."""
JOBS = ("shuffle", "analyze", "discover", "aux-server", "analyzer")
"""The jobs by name; the last two are those of the parties of discover."""
SECONDS = 300.0
PROGRAM = (sys.executable, "-c", "from pipelines.entry import main; main()")


@dataclass(frozen=True)
class Collection:
    """Where it is.

    Attributes:
        chain: its campaign and keys; encoded, shuffled, analysed and discovered, by both parties at a time and apart.
        total: reports of each stream.
        input: every file that jobs read, before any fault.
    """

    chain: Chain
    total: int
    input: dict[str, bytes]

    def source(self, job: str) -> Path:
        """Return what a job reads."""
        return self.chain.path({"shuffle": "encoded", "analyzer": "released"}.get(job, "shuffled"))

    def undisturbed(self, job: str) -> Path:
        """Return what came of a job that nothing disturbed."""
        names = {"shuffle": "shuffled", "analyze": "results", "aux-server": "released", "analyzer": "opened"}
        return self.chain.path(names.get(job, "found"))

    def arguments(self, job: str, out: str | Path, source: str | Path | None = None) -> tuple[str, ...]:
        """Return the arguments of a job that writes to `out`."""
        party = ("--party", job) if job in ("aux-server", "analyzer") else ()
        keys = () if job == "shuffle" else ("--keys", str(self.chain.keys))
        paths = ("--input", str(source or self.source(job)), "--out", str(out))
        return ("job", "discover" if party else job, "--campaign", str(self.chain.campaign_path), *paths, *keys, *party)

    def assert_input_intact(self) -> None:
        """Check that no job changed what jobs read."""
        assert _input(self.chain) == self.input

    def assert_same(self, job: str, out: Path) -> None:
        """Check that a result is that of the undisturbed run, to the report; of a draw, to what is certain."""
        undisturbed = self.undisturbed(job)
        told, expected = summary(out), summary(undisturbed)
        if job == "aux-server":
            self._assert_drawn(out, told["released"])
        if job == "discover":
            kept = len(found(out))
            assert told["bins"] == {"kept": kept, "found": kept, "rejected": {}}
        if job in ("discover", "aux-server"):
            # Which of the borderline bins are kept is drawn for each run.
            for one in (told, expected):
                for name in ("bins", "released", "ledger"):
                    one.pop(name, None)
        if job == "analyzer":
            assert found(out) == found(undisturbed) or sorted(found(out)) == sorted(found(undisturbed))
        for one in (told, expected):
            # A batch is named by its folder.
            one.pop("batch", None)
        assert told == expected
        if job == "shuffle":
            for stream in ("reports", "discovery"):
                rows = read_rows(out / stream)
                assert len(rows) == self.total
                assert as_set(rows) == as_set(read_rows(undisturbed / stream))
        if job == "analyze":
            with np.load(out / "tally.npz") as got, np.load(undisturbed / "tally.npz") as wanted:
                assert got.files == wanted.files
                assert all((got[name] == wanted[name]).all() for name in wanted.files)
        if job == "discover":
            assert set(POPULAR) <= set(found(out)) < set(POPULAR) | set(borderline())
            assert len(set(found(out))) == len(found(out))

    def _assert_drawn(self, out: Path, released: int) -> None:
        """Check the auxiliary server's bins: those that are certain, and no others than borderline ones."""
        form, rows = self.chain.campaign.discovery_format, read_rows(out / "bins")
        bins = {row[:HASH_BYTES].tobytes(): row.tobytes() for row in rows}
        assert len(bins) == len(rows) == released
        undisturbed = {
            row[:HASH_BYTES].tobytes(): row.tobytes() for row in read_rows(self.undisturbed("aux-server") / "bins")
        }
        certain, drawn = ({form.hash(value) for value in values} for values in (POPULAR, borderline()))
        assert certain <= bins.keys() <= certain | drawn
        # Honest clients of a value make the same pair, byte for byte.
        assert all(bins[one] == undisturbed[one] for one in bins.keys() & undisturbed.keys())


def borderline() -> list[str]:
    """Return the values whose bins are kept or not, by chance."""
    return [f"borderline{index}" for index in range(BORDERLINE)]


def collect(root: Path, listed: Mapping[str, int] = LISTED) -> Collection:
    """Make the collection, of these values in the dictionary and the others, and let every job work on it."""
    keys, dictionary = new_keys(root / "keys"), write_lines(root / "dictionary.txt", listed)
    chain = Chain(new_campaign(root / "faults.json", keys, mechanism="ais", dictionary=dictionary, discovery=1.0), keys)
    rule = chain.campaign.require_keep_rule()
    middle = min(range(1, 500), key=lambda count: abs(rule.keep_probability(count) - 0.5))
    assert 0.3 < rule.keep_probability(middle) < 0.7
    truth = {**listed, **POPULAR, **dict.fromkeys(borderline(), middle)}
    chain.encode(write_lines(root / "values.txt", values_of(truth)))
    chain.shuffle()
    chain.analyze()
    chain.discover()
    chain.discover("--party", "aux-server", out="released")
    chain.discover("--party", "analyzer", source="released", out="opened")
    return Collection(chain, sum(truth.values()), _input(chain))


def _input(chain: Chain) -> dict[str, bytes]:
    folders = ("encoded", "shuffled", "released")
    return {f"{name}/{path}": data for name in folders for path, data in files_under(chain.path(name)).items()}


@contextmanager
def started(*options: str) -> Iterator[Popen[str]]:
    """Start a command of ours in a group of its own, and end all of the group."""
    process = Popen(  # noqa: S603  # our own program
        [*PROGRAM, *options], stdout=PIPE, stderr=PIPE, text=True, start_new_session=True
    )
    with process, ended_with_us(process):
        yield process


def finished(*options: str) -> None:
    """Run a command that must end with status 0."""
    with started(*options) as process:
        _, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, told


def assert_failed_in_one_sentence(process: Popen[str], told: str, says: str = "") -> None:
    """Check that a command failed, and told why in one line."""
    assert process.returncode == 1, told
    assert "Traceback" not in told
    lines = told.strip().splitlines()
    assert len(lines) == 1, told
    assert lines[0].startswith("error: ")
    assert says in lines[0], told
