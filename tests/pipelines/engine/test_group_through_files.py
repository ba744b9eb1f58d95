"""Blocks that go through files come back whole, of whichever bundle, and a file that was cut is an error."""

from __future__ import annotations

import resource
import stat
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.test_pipeline import TestPipeline as CheckedPipeline
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given
from hypothesis import strategies as st

from pipelines.engine.group_through_files import Extent, GroupThroughFiles, Spill, Spilled
from pipelines.engine.runner import Engine
from tests.shuffler.test_shuffle import RUNNER, unpacked

pytestmark = pytest.mark.beam

Blocks = list[tuple[int, bytes]]
Extents = list[tuple[int, Extent]]


def bundle(directory: Path | str, blocks: Iterable[tuple[int, bytes]]) -> Extents:
    """Return where the blocks of one bundle are, after the calls that an engine makes for one."""
    dofn = unpacked(Spill(str(directory)))
    dofn.start_bundle()
    made = [extent for block in blocks for extent in dofn.process(block)]
    dofn.finish_bundle()
    return made


def of_place(place: int, extents: Extents) -> Spilled:
    return Spilled(tuple(extent for at, extent in extents if at == place))


# Within bundles.


@given(
    bundles=st.lists(st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=50)), max_size=8), max_size=4),
    data=st.data(),
)
def test_every_block_comes_back_whole_whatever_bundle_it_was_in(bundles: list[Blocks], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        extents = [extent for blocks in bundles for extent in bundle(directory, blocks)]
        assert len(list(Path(directory).iterdir())) == len(bundles)
        arrived = data.draw(st.permutations(extents))
        for place in range(4):
            expected = Counter(block for blocks in bundles for at, block in blocks if at == place)
            met = of_place(place, arrived)
            assert Counter(met) == expected
            # An engine that runs the step that follows again reads them again.
            assert Counter(unpacked(met)) == expected


def test_a_bundle_is_one_file_that_holds_its_blocks_and_nothing_more(tmp_path: Path) -> None:
    blocks = [(place, bytes([place]) * size) for place, size in ((2, 5), (0, 3_000_000), (2, 7), (1, 0), (2, 1))]
    extents = bundle(tmp_path, blocks)
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == b"".join(block for _, block in blocks)
    assert [(place, length) for place, (_, _, length) in extents] == [(place, len(block)) for place, block in blocks]
    assert {name for _, (name, _, _) in extents} == {str(path)}
    assert list(of_place(2, extents)) == [b"\2" * 5, b"\2" * 7, b"\2"]
    assert list(of_place(9, extents)) == []


def test_a_worker_uses_a_step_for_one_bundle_after_another(tmp_path: Path) -> None:
    dofn, extents = Spill(str(tmp_path)), []
    for name in (b"first", b"second"):
        dofn.start_bundle()
        extents += list(dofn.process((0, name)))
        dofn.finish_bundle()
    assert len({path for _, (path, _, _) in extents}) == 2
    assert sorted(of_place(0, extents)) == [b"first", b"second"]


def test_a_bundle_that_failed_and_was_run_again_leaves_its_first_try_out(tmp_path: Path) -> None:
    broken = Spill(str(tmp_path))
    broken.start_bundle()
    _ = list(broken.process((0, b"written by a worker that died")))
    extents = bundle(tmp_path, [(0, b"one"), (0, b"two")])
    assert list(of_place(0, extents)) == [b"one", b"two"]


def test_a_file_that_was_cut_is_an_error_and_never_a_loss(subtests: pytest.Subtests, tmp_path: Path) -> None:
    """The second block of six bytes ends at byte 12; wherever the cut is, it is not read as less than it was."""
    for left in (0, 6, 7, 11):
        with subtests.test(left=left):
            here = tmp_path / str(left)
            here.mkdir()
            extents = bundle(here, [(0, b"first."), (1, b"second"), (0, b"third.")])
            (path,) = here.iterdir()
            path.write_bytes(path.read_bytes()[:left])
            with pytest.raises(OSError, match=rf"{path} .*{max(0, left - 6)} of 6 bytes at byte 6"):
                list(of_place(1, extents))
            with pytest.raises(OSError, match="was cut"):
                list(of_place(0, extents))
            path.unlink()
            with pytest.raises(FileNotFoundError):
                list(of_place(1, extents))


@pytest.fixture
def files_of_1000_bytes() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("files_of_1000_bytes")
@pytest.mark.parametrize("size", [1001, 3_000_000])
def test_a_file_that_cannot_grow_fails_the_bundle(tmp_path: Path, size: int) -> None:
    """When it ends at the latest: no bundle is done whose blocks are not in its file."""
    with pytest.raises(OSError, match="File too large"):
        bundle(tmp_path, [(0, bytes(size))])
    bundle(tmp_path, [(0, bytes(1000))])


# On an engine.


def meet(blocks: Blocks, spill: Path | None, expected: dict[int, list[bytes]], *options: str) -> None:
    """Group blocks by place on the embedded runner, and hold what meets to what must."""

    def are_those(found: list[tuple[int, Iterable[bytes]]]) -> None:
        assert len(dict(found)) == len(found)
        assert {place: sorted(met) for place, met in found} == expected

    with CheckedPipeline(runner=RUNNER, options=PipelineOptions(list(options))) as pipeline:
        grouped = (
            pipeline | beam.Create(blocks) | beam.Reshuffle() | GroupThroughFiles(None if spill is None else str(spill))
        )
        # The files may go with the groups: they are read within one bundle.
        assert_that(grouped | beam.MapTuple(lambda place, met: (place, list(met))), are_those)


@pytest.mark.long
def test_through_files_and_through_the_engine_the_same_blocks_meet(tmp_path: Path) -> None:
    generator = np.random.default_rng(8)
    blocks = [(index % 7, generator.bytes(int(generator.integers(2000)))) for index in range(200)]
    expected = {place: sorted(block for at, block in blocks if at == place) for place in range(7)}
    meet(blocks, None, expected)
    assert not list(tmp_path.iterdir())
    meet(blocks, tmp_path, expected)
    written = list(tmp_path.iterdir())
    assert sum(path.stat().st_size for path in written) == sum(len(block) for _, block in blocks)
    threads = ("--direct_num_workers=3", "--direct_running_mode=multi_threading")
    meet(blocks, tmp_path, expected, *threads)
    assert len(list(tmp_path.iterdir())) > len(written) + 1


def test_of_nothing_nothing_meets(tmp_path: Path) -> None:
    meet([], None, {})
    meet([], tmp_path, {})


# Where the files are.


def test_the_directory_lies_in_the_output_is_its_owners_alone_and_goes(tmp_path: Path) -> None:
    with Engine().spill(str(tmp_path)) as made:
        assert made is not None
        assert Path(made).parent == tmp_path
        assert Path(made).name.startswith(".")
        assert stat.S_IMODE(Path(made).stat().st_mode) == 0o700
        (Path(made) / "block").write_bytes(b"x")
    assert not list(tmp_path.iterdir())


def test_the_direct_runner_is_beams_embedded_engine(tmp_path: Path) -> None:
    """Beam takes this name for a runner that it would download first."""
    blocks = [(index % 3, bytes([index])) for index in range(30)]
    engine = Engine("DirectRunner")
    with engine.spill("gs://bucket/out") as spill, engine.pipeline("shuffle") as pipeline:
        grouped = pipeline | beam.Create(blocks) | beam.Reshuffle() | GroupThroughFiles(spill)
        met = grouped | beam.MapTuple(lambda place, met: (place, sorted(met)))
        assert_that(met, equal_to([(place, [bytes([n]) for n in range(place, 30, 3)]) for place in range(3)]))
    assert isinstance(pipeline.runner, FnApiRunner)


def test_workers_that_write_to_a_store_are_given_none_unless_they_are_here(
    subtests: pytest.Subtests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that write to a local directory reach it, and so what lies in it; those of a store may share no disk."""
    embedding = ("FnApiRunner", "DirectRunner", "directrunner", "Direct", RUNNER)
    for runner, embedded in ((name, name in embedding) for name in (*embedding, "FlinkRunner", "PrismRunner")):
        with subtests.test(runner=runner):
            monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
            with Engine(runner).spill("gs://bucket/out") as made:
                # It is among the system's temporary files.
                assert (None if made is None else Path(made).parent) == (tmp_path if embedded else None)
            with Engine(runner).spill(str(tmp_path)) as made:
                assert made is not None
                assert Path(made).parent == tmp_path
