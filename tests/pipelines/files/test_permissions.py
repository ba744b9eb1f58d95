"""Who may read on this machine what collectors and jobs write: its owner, whatever the umask, or a group if told so."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.deployment.campaigns import read_epochs
from pipelines.epochs.tracked_items import ITEMS_FILE, REVIEW_FILE, decide
from pipelines.files import storage
from pipelines.files.permissions import make_folder
from pipelines.files.storage import write_durably
from pipelines.outputs.staging import staged
from tests.support.collecting import collect
from tests.support.jobs import done
from tests.support.site import FLOOR, Site, values


@pytest.fixture
def open_umask() -> Iterator[None]:
    old = os.umask(0)
    yield
    os.umask(old)


def modes_below(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): stat.S_IMODE(path.stat().st_mode) for path in sorted(root.rglob("*"))}


def test_a_segment_and_the_folders_around_it_are_their_owners(tmp_path: Path, open_umask: None) -> None:
    """They were 0644 in folders 0755: client tokens and sealed reports, for every user of the machine."""
    root = str(tmp_path / "store" / "segments")
    write_durably(root, storage.join(root, "words", "000001-0", "W", "reports", "one.blocks"), [b"sealed"])
    found = modes_below(tmp_path)
    assert found.pop("store/segments/words/000001-0/W/reports/one.blocks") == 0o600
    assert set(found.values()) == {0o700}


def test_all_that_a_run_writes_is_its_owners(tmp_path: Path, open_umask: None) -> None:
    site = Site(tmp_path, discovery=True, tail="[next_epoch.words]\n")
    collect(site.store, site.campaign, values(FLOOR), day=0)
    assert site.run(1.1).problems == []
    done("status", "--config", site.config)
    (epochs,) = read_epochs(site.deployment.campaigns)[0]
    decide(epochs, [], [])
    found = {
        path: mode
        for folder in ("shuffled", "released", "found", "results", "batches")
        for path, mode in modes_below(site.store / folder).items()
    }
    assert len(found) >= 10
    # Discovered values and what was decided about them lie beside campaign files, which everybody may read.
    found |= {name: mode for name, mode in modes_below(epochs.directory).items() if name in (ITEMS_FILE, REVIEW_FILE)}
    assert {ITEMS_FILE, REVIEW_FILE} <= found.keys()
    wrong = {path: oct(mode) for path, mode in found.items() if mode & 0o077}
    assert wrong == {}


def test_a_folder_that_shares_with_its_group_shares_all_but_dead_letters(tmp_path: Path, open_umask: None) -> None:
    store = tmp_path / "shuffled"
    store.mkdir()
    store.chmod(0o2750)
    with staged(str(store / "words" / "batch"), overwrite=False) as directory:
        # Nobody else may look before it is whole.
        assert stat.S_IMODE(Path(directory).stat().st_mode) & 0o077 == 0
        for name in ("reports/part.blocks", "dead_letter/reports/not_opened.blocks", "summary.json"):
            storage.write_whole(storage.join(directory, *name.split("/")), [b"{}"])
    assert modes_below(store) == {
        "words": 0o2750,
        "words/batch": 0o2750,
        "words/batch/reports": 0o2750,
        "words/batch/reports/part.blocks": 0o640,
        "words/batch/dead_letter": 0o700,
        "words/batch/dead_letter/reports": 0o700,
        "words/batch/dead_letter/reports/not_opened.blocks": 0o600,
        "words/batch/summary.json": 0o640,
    }


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_folder(tmp_path)
    make_folder(tmp_path / "new" / "deeper")
    assert modes_below(tmp_path) == {"new": 0o700, "new/deeper": 0o700}
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
