"""A full disk; files that came twice, cut or not at all: no half result, no report counted twice, the input intact."""

from __future__ import annotations

import gc
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.files.blocks import _ReadSpan
from tests.pipelines.conftest import ON_BEAM, TOTAL
from tests.support.jobs import Chain, cli, done, files_under, found, refused, summary
from tests.support.records import as_set, read_file, read_rows, write_rows

Collected = Callable[[str], Chain]
JOBS = ("shuffle", "analyze", "discover", "aux-server", "analyzer")
"""The last two are the jobs of the parties of discover."""
READS = {"shuffle": "encoded", "analyze": "shuffled", "discover": "shuffled", "aux-server": "shuffled"}
_KIB = 1 << 10


@pytest.fixture(scope="session")
def chain(collected: Collected) -> Chain:
    """Both streams, encoded, shuffled, analysed, and released by the auxiliary server."""
    made = collected("ais")
    made.discover("--party", "aux-server", out="released for faults")
    made.discover(out="found for faults")
    return made


def source(chain: Chain, job: str) -> Path:
    """Return what a job reads."""
    return chain.path(READS.get(job, "released for faults"))


def arguments(chain: Chain, job: str, directory: Path, out: Path) -> tuple[object, ...]:
    """Return the arguments of a job from a directory to another."""
    party = ("--party", job) if job in ("aux-server", "analyzer") else ()
    keys = () if job == "shuffle" else ("--keys", chain.keys)
    name = "discover" if party else job
    return ("job", name, "--campaign", chain.campaign_path, "--input", directory, "--out", out, *keys, *party)


@contextmanager
def disk(path: Path, size: int) -> Iterator[Callable[[int], None]]:
    """Mount a disk of so many bytes, yield what changes its size, and unmount it."""
    path.mkdir()
    told = ran("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path)
    if told:
        pytest.skip(f"NOT TESTED on a full disk: a tmpfs cannot be mounted here ({told})")

    def resize(to: int) -> None:
        assert not ran("mount", "-o", f"remount,size={to}", path)

    try:
        yield resize
    finally:
        unmount(path)


def unmount(path: Path, patience: float = 120) -> None:
    """Unmount a disk, waiting for whatever else looks into it; what this process itself holds open fails the test."""
    end = time.monotonic() + patience
    while told := ran("umount", path):
        # What a job that failed had open is closed with its last reference, and an exception can be part of a cycle.
        gc.collect()
        held = [link for link in map(link_of, Path("/proc/self/fd").iterdir()) if link.startswith(f"{path}/")]
        if time.monotonic() > end:
            ran("umount", "--lazy", path)
            pytest.fail(f"{told}; this process holds {held or 'nothing in it'}")
        time.sleep(0.01)


def link_of(descriptor: Path) -> str:
    """Return what a file descriptor of this process is open on, or nothing where it was closed meanwhile."""
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


def ran(*command: object) -> str:
    """Run a command of the system, and return why it failed, or nothing."""
    ended = subprocess.run(  # noqa: S603  # the system's own
        [str(argument) for argument in command], capture_output=True, text=True, check=False
    )
    return ended.stderr.strip() or "failed" if ended.returncode else ""


@pytest.mark.parametrize("job", [*JOBS, pytest.param("shuffle", marks=ON_BEAM, id="shuffle on Beam")])
@pytest.mark.long
def test_a_disk_that_is_full_at_any_moment_and_then_has_room(chain: Chain, tmp_path: Path, job: str) -> None:
    """Each size lets the job come further than the one before; the last has room for all of it."""
    directory = source(chain, job)
    # A disk of one page is full with the first directory of the analyzer, whose results are small.
    before, failed, size = files_under(directory), 0, {"analyzer": 4, "analyze": 8}.get(job, 128) * _KIB
    with disk(tmp_path / "disk", size) as resize:
        out = tmp_path / "disk" / "out"
        while (run := cli(*arguments(chain, job, directory, out))).status:
            assert run.status == 1
            assert "No space left on device" in run.err
            assert run.err.startswith("error: ")
            assert (run.out, run.err.strip().count("\n")) == ("", 0)
            assert not list((tmp_path / "disk").iterdir())
            failed, size = failed + 1, (2 if job in ("analyzer", "analyze") else 4) * size
            assert size < 16 << 20
            resize(size)
        assert files_under(directory) == before
        assert failed
        assert_whole(chain, job, out)


def assert_whole(chain: Chain, job: str, out: Path) -> None:
    """Check that a result is that of the undisturbed run, but for what is drawn for each run."""
    accepted = {"shuffle": 2 * TOTAL, "analyzer": None}.get(job, TOTAL)
    assert accepted is None or summary(out)["accepted"] == accepted
    if job == "shuffle":
        assert as_set(read_rows(out / "reports")) == as_set(read_rows(chain.path("shuffled") / "reports"))
    if job == "analyze":
        with np.load(out / "tally.npz") as got, np.load(chain.path("results") / "tally.npz") as wanted:
            assert all((got[name] == wanted[name]).all() for name in wanted.files)
    if job in ("discover", "analyzer"):
        assert sorted(found(out)) == sorted(found(chain.path("found for faults")))


@pytest.mark.parametrize("job", ["analyze", "discover"])
@pytest.mark.long(but=("analyze",))
def test_a_full_disk_under_the_ledger_charges_nothing_and_hands_out_nothing(
    chain: Chain, tmp_path: Path, job: str
) -> None:
    directory, out = source(chain, job), tmp_path / "out"
    before, failed, size = files_under(directory), 0, 4 * _KIB
    with disk(tmp_path / "disk", size) as resize:
        ledger = tmp_path / "disk" / "ledger.db"
        while (run := cli(*arguments(chain, job, directory, out), "--ledger", ledger)).status:
            assert run.status == 1, run.err
            assert "full" in run.err or "No space left on device" in run.err
            assert run.err.startswith("error: ")
            assert (run.out, run.err.strip().count("\n")) == ("", 0)
            assert not out.exists()
            assert not list(tmp_path.glob(".*"))
            failed, size = failed + 1, size + 4 * _KIB
            resize(size)
        assert failed
        assert summary(out)["ledger"]["charged"]["new"]
        again = done(*arguments(chain, job, directory, tmp_path / "again"), "--ledger", ledger, "--json").json
        assert not again["ledger"]["charged"]["new"]
        if job == "discover":
            assert sorted(found(tmp_path / "again")) == sorted(found(out))
    assert files_under(directory) == before


def copied(chain: Chain, job: str, target: Path) -> tuple[Path, list[Path]]:
    """Copy what a job reads, and return the copy and the block files in it that the job reads."""
    directory = Path(shutil.copytree(source(chain, job), target))
    streams = {"shuffle": "*", "analyze": "reports", "analyzer": "bins"}
    files = sorted(directory.glob(f"{streams.get(job, 'discovery')}/*.blocks"))
    assert files
    return directory, files


def test_all_files_delivered_twice_are_shuffled_once(subtests: pytest.Subtests, chain: Chain, tmp_path: Path) -> None:
    """With the summary of encode beside them, and without one, as from a collector."""
    for summed in (True, False):
        with subtests.test(summed=summed):
            here = tmp_path / str(summed)
            here.mkdir()
            directory, files = copied(chain, "shuffle", here / "in")
            for file in files:
                shutil.copy(file, file.with_name(f"again-{file.name}"))
            if not summed:
                (directory / "summary.json").unlink()
            done(*arguments(chain, "shuffle", directory, here / "out"))
            for stream in ("reports", "discovery"):
                counts = summary(here / "out")["streams"][stream]
                assert counts == {"received": 2 * TOTAL, "accepted": TOTAL, "rejected": {"duplicate": TOTAL}}
                rows = read_rows(here / "out" / stream)
                assert len(rows) == TOTAL
                assert as_set(rows) == as_set(read_rows(chain.path("shuffled") / stream))


def test_all_files_delivered_twice_are_refused_by_whoever_would_count_them(
    subtests: pytest.Subtests, chain: Chain, tmp_path: Path
) -> None:
    for job in JOBS[1:]:
        with subtests.test(job=job):
            here = tmp_path / job
            here.mkdir()
            directory, files = copied(chain, job, here / "in")
            for file in files:
                shutil.copy(file, file.with_name(f"again-{file.name}"))
            refused(*arguments(chain, job, directory, here / "out"), says=["was added"])
            assert not (here / "out").exists()


def test_a_file_that_did_not_come_is_noticed(subtests: pytest.Subtests, chain: Chain, tmp_path: Path) -> None:
    for job in JOBS:
        with subtests.test(job=job):
            here = tmp_path / job
            here.mkdir()
            directory, files = copied(chain, job, here / "in")
            files[0].unlink()
            refused(*arguments(chain, job, directory, here / "out"), says=["is missing"])
            assert not (here / "out").exists()


def test_of_a_file_that_was_cut_what_clients_sent_is_counted_and_what_a_party_wrote_refused(
    subtests: pytest.Subtests, chain: Chain, tmp_path: Path
) -> None:
    """One of two files, cut in its last record: the block of that record is lost, and the counts add up."""
    for job in JOBS:
        with subtests.test(job=job):
            here = tmp_path / job
            here.mkdir()
            directory, files = copied(chain, job, here / "in")
            header, rows = read_file(files[0])
            write_rows(files[0], header.kind, rows[1::2], chain.campaign)
            cut = write_rows(files[0].with_name("cut.blocks"), header.kind, rows[::2], chain.campaign)
            with cut.open("r+b") as stream:
                stream.truncate(cut.stat().st_size - 1)
            lost = len(rows[::2])
            if job != "shuffle":
                damaged = [f"truncated {lost:,}"]
                refused(*arguments(chain, job, directory, here / "out"), status=1, says=damaged)
                assert not (here / "out").exists()
                continue
            done(*arguments(chain, job, directory, here / "out"))
            told = summary(here / "out")
            assert told["rejected"] == {"truncated": lost}
            assert told["received"] == told["accepted"] + lost == TOTAL * 2


def require_nothing_released(chain: Chain, job: str, times: int, out: Path) -> None:
    """Run a job on an engine that gives what it reads so many times, as one may that runs a step again."""
    whole = _ReadSpan.process

    def process(self: _ReadSpan, span: Any) -> Iterator[Any]:
        for _ in range(times):
            yield from whole(self, span)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_ReadSpan, "process", process)
        refused(*arguments(chain, job, source(chain, job), out), status=1, says=["run again"])
    assert not list(out.parent.iterdir())


def test_an_engine_that_reads_a_span_twice_or_not_at_all_releases_nothing(
    subtests: pytest.Subtests, chain: Chain, tmp_path: Path
) -> None:
    for job, times in product(JOBS, (0, 2)):
        with subtests.test(job=job, times=times):
            require_nothing_released(chain, job, times, tmp_path / "out")


@pytest.mark.long
@pytest.mark.beam
def test_beam_that_reads_a_span_twice_releases_nothing(chain: Chain, tmp_path: Path) -> None:
    require_nothing_released(chain, "analyze", 2, tmp_path / "out")
