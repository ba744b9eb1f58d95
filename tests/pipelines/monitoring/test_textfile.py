"""The text file of a run: whole, readable by another user, and true after restarts, problems and failed looks."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from pipelines.log.log import Logs
from pipelines.monitoring import textfile
from pipelines.monitoring.run_metrics import Looks
from pipelines.monitoring.telling import tell
from pipelines.schedule.done import Done
from pipelines.schedule.run import leased
from tests.support.collecting import collect, window_name
from tests.support.jobs import done, refused
from tests.support.site import FLOOR, Site, at, values

TABLE = '[metrics]\ntextfile = "run.prom"\n'
Key = tuple[str, ...]


def read(site: Site, run: str = "shuffler+aux-server+analyzer") -> dict[str, dict[Key, float]]:
    """Return the samples of the file by name, then by the values of labels in the order of their names."""
    found: dict[str, dict[Key, float]] = {}
    for family in text_string_to_metric_families((site.root / "run.prom").read_text()):
        assert family.type in ("gauge", "counter")
        assert family.documentation
        for sample in family.samples:
            assert sample.labels.pop("run") == run
            key = tuple(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name.removeprefix("hushcount_run_"), {})[key] = sample.value
    return found


def looked(site: Site, day: float, *, measures: bool = True) -> dict[str, dict[Key, float]]:
    """Do what `hushcount run` does on a day, and return what the file says then."""
    recorded(site, site.run(day), day, measures=measures)
    return read(site)


def recorded(site: Site, found: Done, day: float, *, measures: bool = True) -> None:
    """Record a look as a new process does."""
    Looks().record(site.deployment, found, logs=Logs(site.deployment), now=at(day), measures=measures)


def test_the_file_says_what_became_of_reports_windows_and_budget(tmp_path: Path) -> None:
    site = Site(tmp_path, tail=TABLE)
    done("ledger", "set", "--ledger", tmp_path / "ledger.db", "--campaign", "words", "--epsilon", 42, "--delta", 1e-6)
    collect(site.store, site.campaign, values(150), day=0)
    said = looked(site, 1.1)
    assert said["last_look_timestamp_seconds"] == said["last_good_look_timestamp_seconds"] == {(): at(1.1).timestamp()}
    assert said["problems"] == {(): 0}
    assert said["collected_reports"][("words", "batched", "reports")] == 150
    assert said["reports_total"] == {("words", hop, "accepted", "reports"): 150 for hop in ("shuffle", "analyze")}
    assert said["differences"] == said["undone_windows"] == {("words",): 0}
    assert "oldest_undone_window_end_timestamp_seconds" not in said
    assert 0 < said["ledger_epsilon_left"][("words",)] < 42
    assert said["ledger_windows_left"] == {("words",): 30}
    assert said["key_expires_timestamp_seconds"][("words", "analyzer")] > at(300).timestamp()
    # Without a process in between that could remember: the numbers are the log's.
    collect(site.store, site.campaign, values(FLOOR - 1), day=1)
    said = looked(site, 2.1)
    assert said["reports_total"][("words", "analyze", "accepted", "reports")] == 150
    assert said["waiting_reports"] == {("words", "reports"): FLOOR - 1}
    assert said["waiting_until_timestamp_seconds"] == {("words", "reports"): at(4).timestamp()}
    assert said["last_chance_reports"] == {("words", "reports"): 0}
    said = looked(site, 3.1)
    assert said["last_chance_reports"] == {("words", "reports"): FLOOR - 1}
    said = looked(site, 4.2)
    assert said["collected_reports"][("words", "too_late", "reports")] == FLOOR - 1
    assert "waiting_until_timestamp_seconds" not in said


def test_another_user_may_read_it_and_nothing_else_lies_beside_it(tmp_path: Path) -> None:
    site = Site(tmp_path, tail=TABLE)
    before = {path.name for path in tmp_path.iterdir()}
    looked(site, 0.1)
    assert stat.S_IMODE((tmp_path / "run.prom").stat().st_mode) == 0o644
    assert {path.name for path in tmp_path.iterdir()} - before == {"run.prom"}


def test_a_window_is_not_done_until_every_hop_here_has_passed_it(tmp_path: Path) -> None:
    site = Site(tmp_path, tail=TABLE)
    collect(site.store, site.campaign, values(150), day=0)
    keys = site.keys.rename(tmp_path / "away")
    said = looked(site, 1.1)
    assert said["undone_windows"] == {("words",): 1}
    assert said["oldest_undone_window_end_timestamp_seconds"] == {("words",): at(1).timestamp()}
    assert said["problems"] == {(): 1}
    assert "last_good_look_timestamp_seconds" not in said
    keys.rename(site.keys)
    assert looked(site, 1.2)["undone_windows"] == {("words",): 0}
    # Nor one that no run has closed.
    collect(site.store, site.campaign, values(150), day=1)
    for day, undone in ((1.9, 0), (2.1, 1)):
        recorded(site, Done(), day)
        assert read(site)["undone_windows"] == {("words",): undone}


def test_a_look_with_a_problem_keeps_when_the_last_good_one_was(tmp_path: Path) -> None:
    site = Site(tmp_path, tail=TABLE)
    (lost,) = collect(site.store, site.campaign, values(100), day=0)
    looked(site, 0.5)
    lost.unlink()
    said = looked(site, 1.1)
    assert said["problems"] == {(): 1}
    assert said["differences"][("words",)] >= 1
    assert said["last_good_look_timestamp_seconds"] == {(): at(0.5).timestamp()}
    assert said["last_look_timestamp_seconds"] == {(): at(1.1).timestamp()}


def test_a_quiet_look_repeats_the_numbers_and_renews_its_own_time(tmp_path: Path) -> None:
    site = Site(tmp_path, tail=TABLE)
    collect(site.store, site.campaign, values(150), day=0)
    first = looked(site, 1.1)
    second = looked(site, 1.2, measures=False)
    assert second["last_look_timestamp_seconds"] == {(): at(1.2).timestamp()}
    own = {"last_look_timestamp_seconds", "last_good_look_timestamp_seconds"}
    assert {name: first[name] for name in first.keys() - own} == {name: second[name] for name in second.keys() - own}


def test_a_look_that_fails_as_a_whole_is_told_with_the_last_numbers(tmp_path: Path) -> None:
    site = Site(tmp_path, tail=TABLE)
    collect(site.store, site.campaign, values(150), day=0)
    before = looked(site, 1.1)
    shutil.rmtree(tmp_path / "campaigns")
    refused("run", "--config", site.config, says=["holds no campaign"])
    after = read(site)
    assert after["problems"] == {(): 1}
    assert after["last_good_look_timestamp_seconds"] == before["last_good_look_timestamp_seconds"]
    assert after["last_look_timestamp_seconds"] != before["last_look_timestamp_seconds"]
    assert after["reports_total"] == before["reports_total"]


def test_a_run_that_finds_another_at_work_leaves_the_file_to_that_one(tmp_path: Path) -> None:
    site = Site(tmp_path, tail=TABLE)
    with leased(site.deployment, wait=False):
        refused("run", "--config", site.config, status=1, says=["another run is at work"])
    assert not (tmp_path / "run.prom").exists()
    done("run", "--config", site.config)
    assert read(site)["problems"] == {(): 0}


def test_a_log_that_cannot_be_read_is_one_problem_and_hides_no_other_number(tmp_path: Path) -> None:
    site = Site(tmp_path, tail=TABLE)
    collect(site.store, site.campaign, values(150), day=0)
    looked(site, 1.1)
    (site.store / "log" / "analyzer" / "words" / "000001" / "0000000001.json").write_bytes(b"{")
    found = Done()
    recorded(site, found, 1.2)
    (problem,) = found.problems
    assert problem.startswith("words: not all metrics: ")
    said = read(site)
    assert "reports_total" not in said
    assert ("words", "analyzer") in said["key_expires_timestamp_seconds"]


def test_a_file_that_cannot_be_written_is_a_problem_and_a_foreign_one_is_replaced(tmp_path: Path) -> None:
    site = Site(tmp_path, tail=TABLE)
    (tmp_path / "run.prom").write_bytes(b"\xff{ no metrics")
    assert looked(site, 0.1)["problems"] == {(): 0}
    site.config.write_text(site.config.read_text().replace("run.prom", "nowhere/run.prom"))
    found = Done()
    recorded(site, found, 0.2)
    (problem,) = found.problems
    assert problem.startswith(f"metrics: {tmp_path}/nowhere/")
    assert problem.endswith("No such file or directory")


def test_files_of_several_runs_can_be_told_apart(tmp_path: Path) -> None:
    site = Site(tmp_path, settings='parties = ["shuffler"]', tail=TABLE)
    recorded(site, site.run(0.1), 0.1)
    assert read(site, "shuffler")["problems"] == {(): 0}
    site.config.write_text(site.config.read_text().replace(TABLE, f'{TABLE}run = "trial"\n'))
    recorded(site, site.run(0.2), 0.2, measures=False)
    assert read(site, "trial")["undone_windows"] == {("words",): 0}


def test_metrics_are_counts_and_verdicts_and_never_items_or_results(tmp_path: Path) -> None:
    """Whatever is counted, discovered and told: of names only those of a closed list of labels get into the file."""
    site = Site(tmp_path, discovery=True, tail=TABLE + '[alerts]\ncommand = ["true"]\nfalse_alarms = 1e-6\n')
    for day, sent in enumerate((values(300), [*["gamma"] * 250, *["nobody"] * 50])):
        collect(site.store, site.campaign, sent, day=day)
        found = site.run(day + 1.1)
        tell(site.deployment, found, logs=Logs(site.deployment), now=at(day + 1.1))
        recorded(site, found, day + 1.1)
    told = Logs(site.deployment).known("words").told
    assert [*told] == [window_name(1)]
    text = (tmp_path / "run.prom").read_text()
    found_in = (site.store / "found" / "words").rglob("found.csv")
    assert any("nobody" in path.read_text() for path in found_in)
    names = ("alpha", "beta", "gamma", "nobody", *told[window_name(1)])
    for word in (*names, str(tmp_path), window_name(0), site.batch(0)):
        assert word not in text
    samples = [one for family in textfile.read(tmp_path / "run.prom").values() for one in family.samples]
    labels = {name for one in samples for name in one.labels}
    assert labels <= {"run", "campaign", "stream", "state", "hop", "outcome", "role"}


def test_a_name_that_no_collector_of_text_files_reads_is_refused(tmp_path: Path) -> None:
    site = Site(tmp_path, tail='[metrics]\ntextfile = "run.txt"\n')
    refused("run", "--config", site.config, says=["textfile is 'run.txt'", ".prom"])
