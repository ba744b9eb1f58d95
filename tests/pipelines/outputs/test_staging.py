"""Output directories: whole or not at all, never over anything unasked, whatever happens while the job runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcount.errors import UsageError
from pipelines.files import storage
from pipelines.files.storage_errors import StorageError
from pipelines.outputs import staging
from pipelines.outputs.staging import staged


def result(directory: Path, text: str) -> None:
    directory.mkdir()
    (directory / "summary.json").write_text('{"hop": "analyze"}')
    (directory / "data").write_text(text)


def write(directory: str, text: str) -> None:
    (Path(directory) / "data").write_text(text)
    (Path(directory) / "summary.json").write_text('{"hop": "analyze"}')


def test_what_appears_while_the_job_runs_is_left_alone(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for overwrite in (False, True):
        with subtests.test(overwrite=overwrite):
            here = tmp_path / str(overwrite)
            here.mkdir()
            out = here / "out"
            with (
                pytest.raises(UsageError, match="not a result"),
                staged(str(out), overwrite) as directory,
            ):
                write(directory, "mine")
                out.mkdir()
                (out / "thesis.txt").write_text("of somebody")
            assert [path.name for path in here.iterdir()] == ["out"]
            assert (out / "thesis.txt").read_text() == "of somebody"


def test_a_second_job_does_not_replace_the_first_ones_result(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(UsageError, match="--overwrite"), staged(str(out), overwrite=False) as directory:
        write(directory, "second")
        result(out, "first")
    assert (out / "data").read_text() == "first"


@pytest.mark.parametrize("exchanges", [True, False], ids=["in one step", "by two renames"])
def test_overwrite_puts_the_new_result_in_place_of_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    if not exchanges:
        monkeypatch.setattr(staging, "_exchange", lambda left, right: False)
    out = tmp_path / "out"
    result(out, "old")
    with staged(str(out), overwrite=True) as directory:
        assert (out / "data").read_text() == "old"
        write(directory, "new")
    assert (out / "data").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failing_job_leaves_the_old_result_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result(out, "old")
    with pytest.raises(RuntimeError), staged(str(out), overwrite=True) as directory:
        write(directory, "half")
        raise RuntimeError
    assert (out / "data").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_link_stays_a_link_to_where_the_result_goes(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    link = tmp_path / "out"
    link.symlink_to(tmp_path / "disk" / "results")
    for text, overwrite in (("first", False), ("second", True)):
        with staged(str(link), overwrite) as directory:
            write(directory, text)
        assert link.is_symlink()
        assert (tmp_path / "disk" / "results" / "data").read_text() == text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "out"]
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["results"]


def test_a_worker_of_a_job_that_was_stopped_does_not_make_its_directory_again(tmp_path: Path) -> None:
    """Threads of a worker outlive the job for a moment: what they write then is written nowhere."""
    with pytest.raises(KeyboardInterrupt), staged(str(tmp_path / "out"), overwrite=False) as directory:
        storage.write_whole(f"{directory}/reports/early", [b"x"])
        raise KeyboardInterrupt
    for name in ("late", "reports/late", "dead_letter/reports/late"):
        with pytest.raises(StorageError, match="is gone"):
            storage.write_whole(f"{directory}/{name}", [b"x"])
    assert not list(tmp_path.iterdir())
