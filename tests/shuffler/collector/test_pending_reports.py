"""What is in journals is seen beside the collector that runs, and only there."""

from __future__ import annotations

import shutil
from pathlib import Path

from hushcount.many_clients import ManyClients
from shuffler.collector.journals.pending_reports import pending_reports
from tests.shuffler.collector.running import LONG, make_site, running, write_config
from tests.support.jobs import done


def test_status_shows_the_open_window_and_what_its_journals_hold(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", window=LONG)
    status = ("status", "--config", site.config)
    (before,) = done(*status, "--json").json
    assert before["collecting"]["held"] is None
    assert "is not here" in before["collecting"]["seen"]
    client = ManyClients(site.campaign())
    with running(site) as collector:
        for number in range(3):
            assert collector.post(client.report("word-3") * 1).status_code == 202, number
        assert collector.post(b"".join(client.report("word-3") for _ in range(4))).status_code == 202
        assert collector.post(client.discovery_report("word-3"), "discovery").status_code == 202
        (now,) = done(*status, "--json").json
        assert [(one["stream"], one["reports"]) for one in now["collecting"]["held"]] == [
            ("discovery", 1),
            ("reports", 7),
        ]
        window = now["collecting"]["window"]
        assert {one["window"] for one in now["collecting"]["held"]} == {window}
        assert now["collecting"]["ends"] < now["collecting"]["closed_by"]
        shown = done(*status).out
        needed = f"a result then needs {site.campaign().shuffle.minimum_batch:,} reports, and 7 are here"
        assert "the open window ends" in shown
        assert needed in " ".join(shown.split())
        assert needed in done("run", "--config", site.config).out
        assert "of collector one alone, on this machine" in shown
        collector.kill()
    # Killed in the middle of a write: what was never acknowledged is not counted.
    (journal,) = site.journal.glob(f"{window}/words/*/reports-*.journal")
    whole = journal.read_bytes()
    journal.write_bytes(whole + whole[-40:])
    assert {one.stream: one.reports for one in pending_reports(site.journal)} == {"discovery": 1, "reports": 7}
    journal.write_bytes(whole[:-1])
    assert {one.stream: one.reports for one in pending_reports(site.journal)} == {"discovery": 1, "reports": 3}
    shutil.move(site.journal, site.base / "elsewhere")
    assert "this machine cannot see" in done(*status).out
    write_config(site, LONG, {"journal": str(site.base / "elsewhere")})
    text = site.config.read_text()
    site.config.write_text(text[: text.index("[collector]")])
    assert "has no [collector] table: run status where a collector runs" in done(*status).out
