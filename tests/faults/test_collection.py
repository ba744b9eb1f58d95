"""What the tests of faults compare with rejects results that are not the same, so that those tests can fail."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from hushcount.wire.blocks import Kind
from hushcount.wire.sealing import Octets
from tests.faults.collection import POPULAR, Collection, borderline, collect
from tests.support.jobs import found, summary
from tests.support.records import read_rows, write_rows

pytestmark = pytest.mark.long
FEW = {"alpha": 60, "beta": 40}


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """As the one that is killed at, but small."""
    return collect(tmp_path_factory.mktemp("collected"), FEW)


@pytest.fixture
def out(collection: Collection, tmp_path: Path) -> Path:
    """A copy of what the auxiliary server released undisturbed."""
    return Path(shutil.copytree(collection.undisturbed("aux-server"), tmp_path / "out"))


def write(out: Path, collection: Collection, rows: Octets, released: int | None = None) -> None:
    """Put other bins in the place of the released ones."""
    for path in (out / "bins").glob("*.blocks"):
        path.unlink()
    write_rows(out / "bins" / "part.blocks", Kind.RELEASED, rows, collection.chain.campaign)
    told = {**summary(out), "released": len(rows) if released is None else released}
    (out / "summary.json").write_text(json.dumps(told))


@pytest.mark.parametrize("job", ["shuffle", "analyze", "discover", "aux-server", "analyzer"])
def test_an_undisturbed_result_is_the_same(collection: Collection, job: str) -> None:
    collection.assert_same(job, collection.undisturbed(job))


def test_another_draw_is_the_same(collection: Collection, out: Path) -> None:
    """Any of the bins that are not certain may be missing."""
    rows = read_rows(out / "bins")
    certain = {collection.chain.campaign.discovery_format.hash(value) for value in POPULAR}
    stays = np.array([row[:32].tobytes() in certain for row in rows])
    assert 2 == stays.sum() < len(rows) < 2 + len(borderline())
    write(out, collection, rows[stays])
    collection.assert_same("aux-server", out)


def without_a_certain_bin(collection: Collection, rows: Octets) -> Octets:
    lost = collection.chain.campaign.discovery_format.hash(next(iter(POPULAR)))
    return rows[[row[:32].tobytes() != lost for row in rows]]


def with_a_bin_twice(_: Collection, rows: Octets) -> Octets:
    return np.concatenate([rows, rows[:1]])


def with_a_foreign_bin(_: Collection, rows: Octets) -> Octets:
    return np.concatenate([rows, rows[:1] ^ np.uint8(1)])


def with_another_content(_: Collection, rows: Octets) -> Octets:
    changed = rows.copy()
    changed[0, -1] ^= 1
    return changed


def test_other_bins_are_not_the_same(collection: Collection, out: Path, subtests: pytest.Subtests) -> None:
    for change in [without_a_certain_bin, with_a_bin_twice, with_a_foreign_bin, with_another_content]:
        with subtests.test(change=change):
            write(out, collection, change(collection, read_rows(out / "bins")))
            with pytest.raises(AssertionError):
                collection.assert_same("aux-server", out)


def test_bins_that_are_missing_or_miscounted_are_not_the_same(collection: Collection, out: Path) -> None:
    rows = read_rows(out / "bins")
    write(out, collection, rows, released=0)
    with pytest.raises(AssertionError):
        collection.assert_same("aux-server", out)
    shutil.rmtree(out / "bins")
    with pytest.raises(AssertionError, match="holds no block file"):
        collection.assert_same("aux-server", out)


def test_values_that_were_found_twice_or_miscounted_are_not_the_same(collection: Collection, tmp_path: Path) -> None:
    out = Path(shutil.copytree(collection.undisturbed("discover"), tmp_path / "out"))
    lines = (out / "found.csv").read_text()
    (out / "found.csv").write_text(lines + lines.splitlines()[-1] + "\n")
    with pytest.raises(AssertionError):
        collection.assert_same("discover", out)
    told = summary(out)
    kept = len(found(out))
    told["bins"] = {**told["bins"], "kept": kept, "found": kept}
    (out / "summary.json").write_text(json.dumps(told))
    with pytest.raises(AssertionError):
        collection.assert_same("discover", out)
