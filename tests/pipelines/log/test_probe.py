"""A store that lets several put one name is found before a log begins in it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from threading import Lock

import pytest
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from hushcount.errors import HushcountError
from pipelines.audit.deployment_checks import puts
from pipelines.audit.view import View
from pipelines.deployment.settings import Deployment
from pipelines.files import stores
from pipelines.log import entries
from pipelines.log.log import Log
from pipelines.log.probe import WRITERS, fault
from tests.faults.store import BUCKET, store
from tests.support.stub_store import StubStore

NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)
pytestmark = pytest.mark.usefixtures("store")


class Gateway:
    """A store that looks whether a name is taken, and puts later: it may believe several."""

    def __init__(self, tells: Callable[[bool], bool], late: int = WRITERS) -> None:
        self._tells, self._late, self._asked = tells, late, 0
        self._lock = Lock()

    def put(self, path: str, data: bytes) -> bool:
        with self._lock:
            self._asked += 1
            # A name that is taken is seen by those who come late.
            is_taken = self._asked > self._late and path in StubStore.objects
            first = path not in StubStore.objects
            if not is_taken:
                StubStore.put(path, data)
            return self._tells(first)


@pytest.mark.parametrize(
    ("gateway", "says"),
    [
        (Gateway(lambda first: True), f"and {WRITERS} were told that they did, must be 1"),
        (Gateway(lambda first: False), "and 0 were told that they did, must be 1"),
        # It answers 412 to all but the first, and writes all the same.
        (Gateway(lambda first: first), "the file is not from the writer that was told so"),
    ],
)
def test_a_gateway_that_lets_several_win_is_found(monkeypatch: pytest.MonkeyPatch, gateway: Gateway, says: str) -> None:
    monkeypatch.setitem(stores.PUTS, "stub", gateway.put)
    assert says in fault("stub://b/log/shuffler")
    assert StubStore.objects == {}


def test_a_store_that_ignores_the_condition_later_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def put(path: str, data: bytes) -> bool:
        asked.append(path)
        return len(asked) > WRITERS or StubStore.put_absent(path, data)

    monkeypatch.setitem(stores.PUTS, "stub", put)
    assert fault("stub://b/log/shuffler") == "a second file of one name was accepted, must be refused"


def test_a_store_that_is_away_is_not_taken_for_a_wrong_one() -> None:
    StubStore.full = "log"
    assert "No space left" in fault("stub://b/log/shuffler")


@pytest.mark.parametrize("kind", ["disk", "stub", "s3"])
def test_a_right_store_passes_and_nothing_is_left(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    if kind == "disk":
        assert fault(str(tmp_path / "log" / "shuffler")) == ""
        assert list((tmp_path / "log" / "shuffler").iterdir()) == []
    elif kind == "stub":
        assert fault("stub://b/log/shuffler") == ""
        assert StubStore.objects == {}
    else:
        before = FileSystems._pipeline_options
        with store(tmp_path) as made:
            FileSystems.set_options(PipelineOptions(list(made.options)))
            try:
                assert fault(f"s3://{BUCKET}/log/shuffler") == ""
            finally:
                FileSystems.set_options(before)
            assert made.names("log") == []
    assert caplog.records == []


def test_doctor_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view = View(deployment_in(tmp_path, "stub://b"), NOW)
    assert [(one.name, one.verdict) for one in puts(view)] == [("puts", "good")]
    monkeypatch.setitem(stores.PUTS, "stub", Gateway(lambda first: True).put)
    (found,) = puts(view)
    assert found.verdict == "bad"
    assert "stub://b/log/aux-server: 16 writers put one file at once" in found.says
    assert found.says.endswith("put the store on another file system or service")


def deployment_in(tmp_path: Path, store: str) -> Deployment:
    (tmp_path / "deployment.toml").write_text(f'store = "{store}"\n[windows]\nlength = "1d"\ngrace = "2d"\n')
    return Deployment.read(tmp_path / "deployment.toml")


def log_in(tmp_path: Path, store: str) -> Log:
    return Log(deployment_in(tmp_path, store), "shuffler", "words")


def test_no_log_begins_in_a_store_that_lets_several_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_in(tmp_path, "stub://wrong")
    with monkeypatch.context() as patch:
        patch.setitem(stores.PUTS, "stub", Gateway(lambda first: True).put)
        with pytest.raises(HushcountError, match=r"^no log can be kept in stub://wrong/log/shuffler: .*must be 1; put"):
            log.decide(lambda _: entries.Confirmed(), NOW)
    assert StubStore.objects == {}
    # A store that was mended is asked again.
    assert log.decide(lambda _: entries.Confirmed(), NOW) is not None
    assert sorted(StubStore.objects) == [
        f"stub://wrong/log/shuffler/words/000001/{number:010d}.json" for number in (1, 2)
    ]


def test_reading_asks_for_nothing(tmp_path: Path) -> None:
    assert log_in(tmp_path, "stub://b").read().latest is None
    assert StubStore.named == []
