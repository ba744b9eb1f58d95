"""A state in PostgreSQL: its password, which no message repeats, and a server that is restarted under a run."""

from __future__ import annotations

import signal
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hushcount.collection.windows import window_at
from hushcount.errors import HushcountError
from pipelines.batches.state import opened
from tests.pipelines.schedule.test_watch import WAIT, watching
from tests.shuffler.collector.running import wait_for
from tests.support.collecting import START, collect
from tests.support.jobs import cli, done, refused
from tests.support.postgres import server
from tests.support.site import Site, values

SECRET = "secret-w:rd"  # noqa: S105  # of a server that only this test has


def test_the_password_comes_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGPASSWORD", "PGPASSFILE"):
        monkeypatch.delenv(name, raising=False)
    with server(SECRET) as running:
        site = Site(tmp_path, settings=f'state = "{running.url}"')
        file = tmp_path / "pgpass"
        escaped = SECRET.replace(":", "\\:")
        file.write_text(f"*:*:*:hushcount:{escaped}\n")
        file.chmod(0o600)
        for environment in ({}, {"PGPASSWORD": "another-secret"}, {"PGPASSWORD": SECRET}, {"PGPASSFILE": str(file)}):
            with monkeypatch.context() as patch:
                for name, value in environment.items():
                    patch.setenv(name, value)
                looked = cli("doctor", "--config", site.config, "--json")
                if {SECRET, str(file)} & set(environment.values()):
                    assert looked.status == 0, looked.out
                    assert "all numbers agree" in done("status", "--config", site.config).out
                else:
                    assert f"state {running.url.partition('?')[0]}" in looked.out
                    refused("run", "--config", site.config, status=1, says=["cannot be used: "])
                assert "another-secret" not in looked.out + looked.err
                assert SECRET not in looked.out + looked.err


def test_no_message_repeats_a_password(subtests: pytest.Subtests) -> None:
    for address in [
        "postgresql://someone:secret-word@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=someone&password=secret-word",
        "postgresql://127.0.0.1:1/db?sslpassword=secret-word",
        "postgresql://someone:x@secret-word@127.0.0.1:1/db",
        "postgresql://someone:secret-word@127.0.0.1:1x/db",
        "postgresql://someone:secret-word@127.0.0.1:1/db?sslmode=bogus",
        "postgresql://someone:secret-word@[::1/db",
        "postgresql://someone:secret-word@127.0.0.1:1/db?bogus=1",
    ]:
        with subtests.test(address=address):
            with pytest.raises(HushcountError) as raised, opened(address):
                pass
            assert str(raised.value).startswith("state ")
            assert "secret-word" not in str(raised.value)


def test_a_url_of_another_database_is_refused_without_its_password(tmp_path: Path) -> None:
    site = Site(tmp_path, settings='state = "mysql://someone:secret-word@127.0.0.1:1/db"')
    said = refused("run", "--config", site.config, says=["must be a file or begin with postgresql://"])
    assert "secret-word" not in said.err


@pytest.mark.long
def test_a_watching_run_goes_on_when_the_server_is_back(tmp_path: Path) -> None:
    """The server ends between two looks, and again in the middle of a batch."""
    with server() as running:
        site = Site(tmp_path, settings=f'state = "{running.url}"')
        ended = window_at(datetime.now(timezone.utc) - timedelta(days=3), timedelta(days=1))
        day = (ended.start - START).days
        collect(site.store, site.campaign, values(100), day=day)
        with watching(site) as (process, log):
            wait_for(lambda: f"done: words/{site.batch(day)} analyze" in log.read_text(), WAIT)
            running.stop()
            wait_for(lambda: "cannot be used" in log.read_text(), WAIT)
            running.start()
            collect(site.store, site.campaign, values(100), day=day + 1)
            wait_for(lambda: f"{site.batch(day + 1)}: shuffle" in log.read_text(), WAIT)
            running.stop()
            before = log.read_text().count("error: ")
            wait_for(lambda: log.read_text().count("error: ") > before, WAIT)
            running.start()
            wait_for(lambda: f"done: words/{site.batch(day + 1)} analyze" in log.read_text(), WAIT)
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT) == 0
        assert "Traceback" not in log.read_text()
        assert [site.result(one)["accepted"] for one in (day, day + 1)] == [100, 100]
        assert "all numbers agree" in done("status", "--config", site.config).out
