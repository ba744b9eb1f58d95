"""Two processes that delete the same files: what is gone already is no failure."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from pipelines.files import storage


def test_a_file_that_is_gone_is_deleted(tmp_path: Path) -> None:
    path = tmp_path / "one"
    path.write_text("x")
    for _ in range(2):
        storage.remove(str(path))
    assert not path.exists()


def test_two_that_delete_one_directory_do_not_fail_each_other(tmp_path: Path) -> None:
    for number in range(5):
        root = tmp_path / str(number)
        for folder in range(20):
            (root / str(folder)).mkdir(parents=True)
            for file in range(20):
                (root / str(folder) / str(file)).touch()
        start = Barrier(2)

        def delete(path: str = str(root), start: Barrier = start) -> None:
            start.wait()
            storage.remove_directory(path)

        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(delete) for _ in range(2)]:
                done.result()
        assert not root.exists()


def test_a_directory_that_cannot_be_deleted_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError):
        (tmp_path / "file").touch()
        storage.remove_directory(str(tmp_path / "file"))
