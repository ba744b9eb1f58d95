"""What leaves the shuffler: ciphertexts in a random order, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from hushcount.collection.envelopes import envelope_dtype
from hushcount.wire.blocks import HEADER_BYTES
from pipelines.engine.runner import Engine
from pipelines.files.storage_errors import StorageError
from pipelines.jobs.job import run
from pipelines.jobs.shuffle import plan_shuffle
from tests.pipelines.conftest import TOTAL
from tests.support.jobs import ALPHA, Chain, files_under, summary
from tests.support.records import as_set, in_order, read_file, read_rows, write_envelopes

Collected = Callable[[str], Chain]


def arrived(chain: Chain, stream: str) -> np.ndarray:
    """Return the envelopes in the order of their arrival."""
    rows = read_rows(chain.path("encoded") / stream)
    sealed = chain.campaign.sealed_bytes(stream)  # type: ignore[arg-type]
    return np.frombuffer(rows.tobytes(), dtype=envelope_dtype(sealed))


def windows(content: bytes) -> np.ndarray:
    """Return all runs of 8 consecutive bytes as numbers, sorted."""
    runs = [content[shift : (len(content) - shift) // 8 * 8 + shift] for shift in range(8)]
    return np.sort(np.frombuffer(b"".join(runs), "<u8"))


def among(numbers: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """Return which of the numbers are in the sorted ones."""
    place = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
    return ordered[place] == numbers


@pytest.mark.parametrize("stream", ["reports", "discovery"])
def test_only_ciphertexts_leave(collected: Collected, stream: str) -> None:
    """No 8 bytes of a token, address or time of any report are in the output; by chance with probability below 1e-7."""
    chain = collected("ais")
    envelopes = arrived(chain, stream)
    outside = windows(b"".join(files_under(chain.path("encoded")).values()))
    inside = windows(b"".join(files_under(chain.path("shuffled")).values()))
    octets = np.frombuffer(envelopes.tobytes(), dtype=np.uint8).reshape(len(envelopes), -1)
    metadata = envelopes.dtype.itemsize - envelopes.dtype["sealed"].itemsize
    for start in (0, 8, 16, 24, 32):
        assert start + 8 <= metadata
        pieces = np.ascontiguousarray(octets[:, start : start + 8]).view("<u8")[:, 0]
        assert among(pieces, outside).all()
        assert not among(pieces, inside).any()
        assert not among(pieces.byteswap(), inside).any()
    first = np.ascontiguousarray(octets[:, metadata : metadata + 8]).view("<u8")[:, 0]
    assert among(first, inside).all()


@pytest.mark.parametrize("stream", ["reports", "discovery"])
def test_records_have_one_length_and_the_file_nothing_more(collected: Collected, stream: str) -> None:
    chain = collected("ais")
    (path,) = (chain.path("shuffled") / stream).iterdir()
    header, rows = read_file(path)
    assert header.record_bytes == rows.shape[1] == chain.campaign.sealed_bytes(stream)  # type: ignore[arg-type]
    assert header.records == TOTAL
    assert path.stat().st_size == header.file_bytes
    assert header.campaign == chain.campaign.fingerprint


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Return Spearman's rho times sqrt(n - 1), standard normal for independent orders of thousands."""
    return float(stats.spearmanr(first, second).statistic) * float(np.sqrt(len(first) - 1))


def test_order_says_nothing_of_arrival_and_is_drawn_anew(collected: Collected) -> None:
    """Both streams and a second shuffle: every pair of orders is independent, 12 tests at 1e-6 together.

    A shuffler that keeps the order, or sorts by ciphertext, or uses the same order for both streams, is rejected.
    """
    chain = collected("ais")
    chain.shuffle(out="shuffled-again")
    bound = float(stats.norm.isf(ALPHA / 2.0 / 12.0))
    orders = []
    for stream in ("reports", "discovery"):
        arrival = {row["sealed"]: index for index, row in enumerate(arrived(chain, stream))}
        by_ciphertext = {sealed: index for index, sealed in enumerate(sorted(arrival))}
        for out in ("shuffled", "shuffled-again"):
            rows = read_rows(chain.path(out) / stream)
            keys = np.frombuffer(rows.tobytes(), dtype=f"S{rows.shape[1]}")
            order = np.array([arrival[key] for key in keys])
            sorted_order = np.array([by_ciphertext[key] for key in keys])
            orders.append(order)
            positions = np.arange(len(order))
            assert sorted(order) == list(positions)
            assert abs(rank_correlation(order, positions)) < bound
            assert abs(rank_correlation(sorted_order, positions)) < bound
    for first, second in ((0, 1), (2, 3), (0, 2), (1, 3)):
        assert abs(rank_correlation(orders[first], orders[second])) < bound
    assert rank_correlation(np.arange(TOTAL), np.arange(TOTAL)) > bound


def test_the_same_reports_in_another_order_at_other_times_look_the_same(collected: Collected) -> None:
    """Headers, names, lengths and summary are equal, whatever the arrival; only the order of the records differs."""
    chain = collected("ais")
    for stream in ("reports", "discovery"):
        envelopes = arrived(chain, stream)[::-1].copy()
        envelopes["received_ms"] = envelopes["received_ms"][::-1] + np.uint64(86_400_000)
        rows = np.frombuffer(envelopes.tobytes(), dtype=np.uint8).reshape(len(envelopes), -1)
        for index, part in enumerate(np.array_split(rows, 2)):
            write_envelopes(chain.path("late"), chain.campaign, stream, part, f"{index}")  # type: ignore[arg-type]
    (chain.path("late") / "summary.json").write_bytes((chain.path("encoded") / "summary.json").read_bytes())
    # The operator names a batch by its folder.
    late = chain.shuffle(source="late", out=f"late-of/{chain.path('shuffled').name}")
    first, second = files_under(chain.path("shuffled")), files_under(late)
    assert first.keys() == second.keys()
    for name, content in first.items():
        assert len(content) == len(second[name])
        assert content[:HEADER_BYTES] == second[name][:HEADER_BYTES]
    assert summary(chain.path("shuffled")) == summary(late)
    assert any(first[name] != second[name] for name in first)


def test_over_many_shards_every_report_leaves_once_and_its_shard_is_drawn_anew(
    collected: Callable[[str], Chain], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards of about 200: that two runs put all reports of one alike has probability below 1e-100."""
    # Other tests use the chain too, so it is made with whole shards.
    chain = collected("ais")
    monkeypatch.setattr("pipelines.jobs.shuffle._SHARD_RECORDS", 200)
    seen = []
    for out in (tmp_path / "one", tmp_path / "other"):
        counted = run(plan_shuffle(chain.campaign_path, str(chain.path("encoded")), str(out)))
        for stream in ("reports", "discovery"):
            assert counted.accepted_of(stream) == TOTAL
            rows = read_rows(out / stream)
            sent = np.frombuffer(arrived(chain, stream)["sealed"].tobytes(), dtype=np.uint8).reshape(rows.shape)
            assert in_order(rows) == in_order(sent)
        paths = sorted((out / "reports").iterdir())
        assert [path.name for path in paths] == [
            f"part-{shard:05d}-of-{len(paths):05d}.blocks" for shard in range(-(-TOTAL // 200))
        ]
        seen.append(as_set(read_file(paths[0])[1]))
    assert seen[0] != seen[1]


# What the shuffler puts aside on the way lies in its hidden directory, and goes.


@dataclass(frozen=True)
class Watching(Engine):
    """Beam's embedded runner, of which is noted what lay in files when the pipeline had run."""

    spilled: list[Path] = field(default_factory=list)
    in_the_way: str = ""
    """Name of a file that is made in the output, so that the job cannot write there."""

    @contextmanager
    def spill(self, directory: str) -> Iterator[str | None]:
        if self.in_the_way:
            (Path(directory) / self.in_the_way).write_bytes(b"")
        with super().spill(directory) as made:
            assert made is not None
            try:
                yield made
            finally:
                self.spilled.extend(Path(made).iterdir())


def assert_hidden(paths: list[Path], out: Path) -> None:
    assert paths
    for path in paths:
        hidden, inner = path.relative_to(out.parent).parts[:2]
        assert hidden.startswith(f".{out.name}.")
        assert inner.startswith(".spill-")
        assert not path.exists()


def test_after_a_run_only_the_result_is_left(collected: Collected, tmp_path: Path) -> None:
    engine, out, chain = Watching(), tmp_path / "out", collected("ais")
    run(plan_shuffle(chain.campaign_path, str(chain.path("encoded")), str(out)), engine)
    assert_hidden(engine.spilled, out)
    assert sorted(tmp_path.iterdir()) == [out]
    assert files_under(out).keys() == files_under(chain.path("shuffled")).keys()


@pytest.mark.parametrize("stream", ["reports", "discovery"])
def test_after_a_run_that_failed_nothing_is_left(collected: Collected, tmp_path: Path, stream: str) -> None:
    engine, out, chain = Watching(in_the_way=stream), tmp_path / "out", collected("ais")
    with pytest.raises(StorageError):
        run(plan_shuffle(chain.campaign_path, str(chain.path("encoded")), str(out)), engine)
    assert_hidden(engine.spilled, out)
    assert not list(tmp_path.iterdir())
