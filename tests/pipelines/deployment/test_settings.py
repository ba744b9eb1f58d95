"""What a deployment file may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcount.errors import UsageError
from pipelines.deployment.settings import Deployment


@pytest.mark.parametrize("state", ["state.db", "postgresql://hushcount@localhost/state"])
def test_a_file_of_a_version_with_a_state_is_refused_by_the_name_of_the_setting(tmp_path: Path, state: str) -> None:
    path = tmp_path / "deployment.toml"
    path.write_text(f'store = "store"\nstate = "{state}"\nwindows = {{length = "1d", grace = "2d"}}\n')
    with pytest.raises(UsageError, match=r"deployment\.toml.*\bstate\b"):
        Deployment.read(path)
    path.write_text(path.read_text().replace(f'state = "{state}"\n', ""))
    assert Deployment.read(path).store == str(tmp_path / "store")


def test_the_log_and_attempts_lie_in_the_store_or_where_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "deployment.toml"
    path.write_text(
        'store = "store"\nwindows = {length = "1d", grace = "2d"}\npaths = {attempts = "scratch", log = "s3://log/one"}\n'
    )
    read = Deployment.read(path)
    assert read.folder("attempts", "shuffler") == str(tmp_path / "scratch" / "shuffler")
    assert read.folder("log", "shuffler", "words") == "s3://log/one/shuffler/words"
    assert read.folder("shuffled") == str(tmp_path / "store" / "shuffled")


def test_durations_in_errors_are_written_as_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "deployment.toml"
    windows = 'store = "store"\nwindows = {length = "month", grace = "2d"'
    for text, says in (
        (windows + '}\nretention = {segments = "30d"}\n', "retention.segments is 30d, must be at least 36d, twice"),
        (windows + ', patience = "72h"}\n', "patience is 3d, must be at most the grace period, 2d"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=says):
            Deployment.read(path)
