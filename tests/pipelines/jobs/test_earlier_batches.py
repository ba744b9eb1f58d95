"""What earlier batches forwarded is read whole, or nothing is released: else copies of lost reports would leave."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hushcount.collection.epochs import epoch_folder
from hushcount.errors import HushcountError
from hushcount.wire.blocks import Kind
from pipelines.engine.runner import Engine
from pipelines.files.block_files import BlockFile
from pipelines.files.blocks import _ReadSpan
from pipelines.handover.batch_file import BatchFile, BatchSegment
from pipelines.jobs.job import run as run_job
from pipelines.jobs.shuffle import plan_shuffle
from tests.pipelines.conftest import ON_BEAM
from tests.support.jobs import Chain, new_campaign, new_keys, summary, write_lines
from tests.support.records import read_file

BEFORE, NEW = 90, 60
STREAMS = ("reports", "discovery")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A batch that was forwarded, and what came next: as many copies of it, and new reports."""
    root = tmp_path_factory.mktemp("made")
    keys, dictionary = new_keys(root / "keys"), write_lines(root / "items.txt", ["alpha"])
    chain = Chain(new_campaign(root / "c.json", keys, dictionary=dictionary, discovery=1.0), keys)
    for name, number in (("before", BEFORE), ("new", NEW)):
        chain.encode(write_lines(root / f"{name}.txt", ["unlisted"] * number), out=name)
    chain.shuffle(source="before", out=f"shuffled/20260101T000000Z-{epoch_folder(chain.campaign)}")
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy of it to be damaged."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def second(root: Path) -> BatchFile:
    """Return the second batch: copies of what was forwarded, and new reports."""
    campaign = Chain(root / "c.json", root / "keys").campaign
    segments = {}
    for stream in STREAMS:
        found = [path for name in ("before", "new") for path in (root / f"c-{name}" / stream).glob("*.blocks")]
        segments[stream] = tuple(
            BatchSegment(
                path=str(path.relative_to(root)), records=header.records,
                bytes=header.file_bytes, digest="0" * 64,
            )
            for path, header in ((path, read_file(path)[0]) for path in found)
        )  # fmt: skip
    return BatchFile(
        campaign=campaign.id, epoch=campaign.epoch, fingerprint=campaign.fingerprint.hex(), window="20260101T000000Z",
        segments_folder=str(root), shuffled_folder=str(root / "c-shuffled"),
        earlier=(f"20260101T000000Z-{epoch_folder(campaign)}",), segments=segments,
    )  # fmt: skip


def shuffle(root: Path) -> None:
    """Shuffle the second batch, as a run does."""
    run_job(plan_shuffle(root / "c.json", second(root), str(root / "out")), Engine())


def require_refused(root: Path, says: list[str]) -> None:
    with pytest.raises(HushcountError) as refused:
        shuffle(root)
    assert all(text in str(refused.value) for text in says), refused.value


def earlier(root: Path) -> Path:
    """Return the folder of the batch that was shuffled before."""
    (folder,) = (root / "c-shuffled").iterdir()
    return folder


def released(root: Path, stream: str) -> Path:
    (path,) = (earlier(root) / stream).glob("*.blocks")
    return path


@pytest.mark.usefixtures("either_engine")
def test_copies_of_what_was_forwarded_are_dropped_and_counts_are_those_of_the_batch_alone(root: Path) -> None:
    shuffle(root)
    expected = {"received": BEFORE + NEW, "accepted": NEW, "rejected": {"duplicate": BEFORE}}
    assert summary(root / "out")["streams"] == dict.fromkeys(STREAMS, expected)


@pytest.mark.parametrize("stream", STREAMS)
def test_a_damaged_block_of_an_earlier_batch_fails_the_job(root: Path, stream: str) -> None:
    path = released(root, stream)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    says = [f"{stream} of earlier batches", f"corrupt_block {BEFORE}"]
    require_refused(root, says)
    assert not (root / "out").exists()


def test_a_file_of_an_earlier_batch_that_is_lost_is_refused(root: Path) -> None:
    released(root, "reports").unlink()
    require_refused(root, ["reports of earlier batches", str(root / "c-shuffled"), "0 records", str(BEFORE)])
    shutil.rmtree(lost := earlier(root))
    require_refused(root, [str(lost)])
    assert not (root / "out").exists()


def test_an_earlier_batch_of_another_campaign_file_fails_the_job(root: Path) -> None:
    other = Chain(new_campaign(root / "o.json", root / "keys", dictionary=root / "items.txt"), root / "keys")
    other.encode(root / "before.txt")
    shutil.copytree(other.shuffle() / "reports", earlier(root) / "reports", dirs_exist_ok=True)
    require_refused(root, [f"wrong_campaign {BEFORE}"])


@pytest.mark.parametrize("times", [0, 2, pytest.param(2, marks=ON_BEAM, id="2 on Beam")])
def test_an_engine_that_loses_or_repeats_what_earlier_batches_forwarded_fails_the_job(
    root: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    whole = _ReadSpan.process

    def process(self: _ReadSpan, span: tuple[BlockFile, int, int]) -> Iterator[Any]:
        for _ in range(times if span[0].header.kind == Kind.SEALED_DISCOVERY else 1):
            yield from whole(self, span)

    monkeypatch.setattr(_ReadSpan, "process", process)
    told = ["discovery of earlier batches", f"{times * BEFORE} records", f"files hold {BEFORE}"]
    require_refused(root, told)
    assert not (root / "out").exists()
