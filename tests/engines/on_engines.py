"""One encoding on every engine: the same tally, the same set of accepted reports, the same discovered values."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pipelines.engine.runner import Engine
from pipelines.files.storage_errors import StorageError
from pipelines.jobs.job import run as run_job
from pipelines.jobs.shuffle import plan_shuffle
from tests.engines.conftest import COPIES, POPULAR, TOTAL, Engines, Servers
from tests.support.jobs import ALPHA, Chain, done, estimates, files_under, found, summary
from tests.support.records import as_set, in_order, read_rows

STREAMS = ("reports", "discovery")
FLINK = ["Flink, embedded", "Flink, worker pool", "Flink, processes"]
BOUND = float(stats.norm.isf(ALPHA / 2.0 / 6.0))
"""Of a rank correlation times sqrt(n - 1), over six tests."""
OTHERS = ["FnApiRunner, processes", "Prism", *FLINK]

# Workers that are threads of this process end with an exception when their engine hangs up, in jobs that are done too.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
every_other = pytest.mark.parametrize("engine", OTHERS)


@pytest.fixture
def clock(request: pytest.FixtureRequest) -> Iterator[None]:
    """Print how long a run took: for people, no test looks at it."""
    began = time.monotonic()
    yield
    print(f"\n{request.node.name}: {time.monotonic() - began:.1f} s")


def run(chain: Chain, job: str, out: Path, *options: str) -> None:
    """Run a job on what all engines are given."""
    source = chain.path("encoded" if job == "shuffle" else "shuffled")
    keys = () if job == "shuffle" else ("--keys", chain.keys)
    done("job", job, "--campaign", chain.campaign_path, "--input", source, "--out", out, *keys, *options)


def tally(directory: Path) -> dict[str, np.ndarray]:
    with np.load(directory / "tally.npz") as file:
        return {name: file[name] for name in file.files}


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("engine", ["FnApiRunner", *OTHERS])
def test_every_report_leaves_the_shuffler_once_and_its_copies_are_counted(
    chain: Chain, options: Engines, tmp_path: Path, engine: str
) -> None:
    out = tmp_path / "out"
    run(chain, "shuffle", out, *options[engine])
    assert summary(out)["streams"] == summary(chain.path("shuffled"))["streams"]
    for stream in STREAMS:
        counts = summary(out)["streams"][stream]
        assert counts["received"] == TOTAL + COPIES
        assert counts["accepted"] == TOTAL
        assert sum(counts["rejected"].values()) == COPIES
        rows = read_rows(out / stream)
        assert len(rows) == TOTAL
        assert as_set(rows) == as_set(read_rows(chain.path("shuffled") / stream))
    assert sorted(tmp_path.iterdir()) == [out]


@pytest.mark.usefixtures("clock")
@every_other
def test_the_tally_is_equal(chain: Chain, options: Engines, tmp_path: Path, engine: str) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    run(chain, "analyze", here)
    run(chain, "analyze", there, *options[engine])
    expected, got = tally(here), tally(there)
    assert expected.keys() == got.keys()
    for name, array in expected.items():
        assert (array == got[name]).all(), name
    assert estimates(here) == estimates(there)
    # A batch is named by its folder.
    assert {**summary(here), "batch": "there"} == summary(there)
    assert summary(there)["accepted"] == TOTAL


@pytest.mark.usefixtures("clock")
@every_other
def test_what_many_send_is_found(chain: Chain, options: Engines, tmp_path: Path, engine: str) -> None:
    """The counts of all pairs are equal; which rare bins are kept is drawn, here none with probability 1 - 1e-6."""
    here, there = tmp_path / "here", tmp_path / "there"
    # Without a summary nobody says by what the senders were told apart.
    run(chain, "discover", here, "--uncapped")
    run(chain, "discover", there, "--uncapped", *options[engine])
    assert summary(here)["streams"] == summary(there)["streams"]
    assert set(found(there)) == set(POPULAR) == set(found(here))


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Return Spearman's rho times sqrt(n - 1), standard normal for independent orders of thousands."""
    return float(stats.spearmanr(first, second).statistic) * float(np.sqrt(len(first) - 1))


@pytest.mark.parametrize("kept", [0.05, 0.1, 1.0])
def test_an_order_in_which_a_part_arrived_so_is_rejected(kept: float) -> None:
    """So that the test below can fail: of as many records, one in twenty in its order of arrival, the rest mixed."""
    generator = np.random.default_rng(7)
    order = generator.permutation(TOTAL)
    places = np.sort(generator.choice(TOTAL, int(kept * TOTAL), replace=False))
    order[places] = np.sort(order[places])
    assert rank_correlation(order, np.arange(TOTAL)) > BOUND
    assert abs(rank_correlation(generator.permutation(TOTAL), np.arange(TOTAL))) < BOUND


@pytest.mark.parametrize("engine", ["Flink, worker pool", "Prism"])
def test_the_order_says_nothing_of_arrival(chain: Chain, options: Engines, tmp_path: Path, engine: str) -> None:
    """Independent of arrival and of the other run's order: 6 tests at 1e-6 together; one that is kept is rejected."""
    for stream in STREAMS:
        orders = []
        for out in ("one", "other"):
            if not (tmp_path / out).exists():
                run(chain, "shuffle", tmp_path / out, *options[engine])
            rows = read_rows(tmp_path / out / stream)
            arrived = read_rows(chain.path("encoded") / stream)[:, -rows.shape[1] :]
            place = {row.tobytes(): index for index, row in enumerate(arrived)}
            orders.append(np.array([place[row.tobytes()] for row in rows]))
            assert abs(rank_correlation(orders[-1], np.arange(len(rows)))) < BOUND
        assert abs(rank_correlation(*orders)) < BOUND
        assert rank_correlation(np.sort(orders[0]), np.arange(len(orders[0]))) > BOUND
    assert in_order(read_rows(tmp_path / "one" / "reports")) == in_order(read_rows(tmp_path / "other" / "reports"))


def test_the_cluster_did_the_work(servers: Servers, chain: Chain, options: Engines, tmp_path: Path) -> None:
    """Not an engine in this process: the JobManager counts one more finished job, on two TaskManagers."""
    before = servers.cluster.ask("/overview")
    run(chain, "analyze", tmp_path / "out", *options["Flink, worker pool"])
    after = servers.cluster.ask("/overview")
    assert after["jobs-finished"] == before["jobs-finished"] + 1
    assert after["taskmanagers"] == 2


class InTheWay(Engine):
    """An engine in whose output lies a file where the workers are to make a folder."""

    @contextmanager
    def spill(self, directory: str) -> Iterator[str | None]:
        (Path(directory) / "reports").write_bytes(b"")
        with super().spill(directory) as made:
            yield made


@pytest.mark.parametrize("engine", [*FLINK, "Prism"])
def test_a_worker_that_fails_is_told_in_one_sentence_and_leaves_nothing(
    chain: Chain, options: Engines, tmp_path: Path, engine: str
) -> None:
    before = files_under(chain.path("encoded"))
    _, runner, _, *beam_options = options[engine]
    broken = InTheWay(runner, tuple(beam_options))
    with pytest.raises(StorageError, match=r"released nothing; the input is untouched: .*reports") as raised:
        run_job(plan_shuffle(chain.campaign_path, str(chain.path("encoded")), str(tmp_path / "out")), broken)
    assert "\n" not in str(raised.value)
    assert files_under(chain.path("encoded")) == before
    assert not list(tmp_path.iterdir())
