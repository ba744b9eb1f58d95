"""The data set of a store: each result is in one file, with its own numbers, and who looks is told of a lost one."""

from __future__ import annotations

import csv
import math
import shutil
from pathlib import Path
from random import Random

import pytest

from hushcount.collection.windows import window_start
from hushcount.errors import FormatError
from hushcount.results import FOLDER, read, schema
from pipelines.monitoring.dashboard import page_of
from pipelines.questions.spans import Span
from tests.pipelines.jobs.data_set.conftest import HALF
from tests.support.collecting import DAY, collect, window_name
from tests.support.jobs import cli, done, estimates, refused, summary
from tests.support.site import FLOOR, Site, at, values

SAME = (
    "count", "standard_error", "collision_error", "low", "high", "low_all", "high_all", "detected", "detected_all",
)  # fmt: skip


def files(site: Site) -> dict[str, bytes]:
    root = site.store / FOLDER
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def rows(site: Site, campaign: str, day: int = 0) -> list[dict[str, object]]:
    return list(read(site.store / FOLDER, campaign, [window_name(day)]).to_pylist())


def test_each_result_is_one_file_and_has_its_own_numbers(made: Site) -> None:
    results = sorted((made.store / "results").glob("*/*/summary.json"))
    assert len(results) == len(files(made)) == len([*made.store.rglob("*.parquet")]) == 5
    table = read(made.store / FOLDER)
    assert table.schema.equals(schema(), check_metadata=True)
    for mark in results:
        said, campaign, batch = summary(mark.parent), mark.parts[-3], mark.parts[-2]
        window, _, file = batch.partition("-")
        here = read(made.store / FOLDER, campaign, [window]).to_pylist()
        here = [row for row in here if f"{row['epoch']:06d}-{row['fingerprint']}" == file]
        known = estimates(mark.parent)
        assert {row["item"] for row in here if row["source"] == "estimate" and not row["other"]} == known.keys()
        for row in here:
            assert (row["campaign"], row["window"], row["reports"]) == (campaign, window, said["accepted"])
            assert (row["window_start"], row["window_end"]) == (window_start(window), window_start(window) + DAY)
            assert row["share"] == row["count"] / row["reports"]
            assert row["variance"] == row["standard_error"] ** 2 + row["collision_error"] ** 2
            if row["source"] == "estimate" and not row["other"]:
                assert [row[name] for name in SAME] == [known[row["item"]][name] for name in SAME]
        others = [row for row in here if row["other"]]
        assert len(others) == ("other" in said)
        for row in others:
            assert {name: row[name] for name in said["other"]} == said["other"]
            assert (row["item"], row["low_all"], row["detected_all"]) == (None, None, None)
            assert here[-1] == row
        counts = [row["count"] for row in here if not row["other"]]
        assert counts == sorted(counts, reverse=True)


def test_every_accepted_report_is_in_one_file_also_one_that_came_late(made: Site) -> None:
    table = read(made.store / FOLDER, "words").group_by(["window", "epoch", "reports"]).aggregate([])
    counted = {(row["window"], row["epoch"]): row["reports"] for row in table.to_pylist()}
    assert counted == {(window_name(0), 1): HALF + 60, (window_name(1), 1): 70, (window_name(1), 2): 2 * HALF}


def test_discovered_values_have_rows_of_their_own_or_a_combined_count(made: Site) -> None:
    settings = {row["item"]: row for row in rows(made, "settings")}
    assert settings["=1+1"]["source"] == "estimate"
    new = settings["new"]
    assert (new["source"], new["collision_error"], new["detected_all"]) == ("discovery", 0.0, True)
    # Beyond 60 the noise has a probability below 1e-9.
    assert abs(new["count"] - HALF) < 60
    assert new["low_all"] == new["low"] < new["count"] < new["high"]
    assert {(row["repeated"], row["pool"]) for row in settings.values()} == {(True, True)}
    (open_,) = rows(made, "open")
    assert open_["source"] == "estimate"
    assert open_["combined_error"] < 3.0 < math.sqrt(open_["variance"])
    assert abs(open_["combined"] - HALF) < 60
    assert (open_["mechanism"], open_["epsilon"], open_["repeated"], open_["pool"]) == ("gcms", 4.0, False, True)


@pytest.mark.long
def test_only_where_the_analyzer_runs_and_where_paths_say(tmp_path: Path) -> None:
    site = Site(tmp_path, tail='[paths]\nestimates = "elsewhere"\n')
    collect(site.store, site.campaign, values(100), day=0)
    text = site.config.read_text()
    site.config.write_text(f'parties = ["shuffler"]\n{text}')
    site.run(1.1)
    assert not (tmp_path / "elsewhere").exists()
    site.config.write_text(text)
    site.run(1.2)
    assert read(tmp_path / "elsewhere")["reports"].to_pylist() == [100] * 4
    assert not (site.store / FOLDER).exists()
    assert (next((tmp_path / "elsewhere").rglob("*.parquet")).stat().st_mode & 0o077) == 0


def test_too_few_reports_have_no_table_and_nobody_misses_it(tmp_path: Path) -> None:
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(FLOOR - 1), day=0)
    assert site.run(1.1).problems == []
    assert not (site.store / FOLDER).exists()
    done("status", "--config", site.config, "--digests")


def test_who_looks_is_told_of_a_table_that_is_missing_or_damaged(made: Site, tmp_path: Path) -> None:
    site = made.copied(tmp_path / "site")
    looks = ("status", "--config", site.config)
    done(*looks, "--digests")
    (path,) = (site.store / FOLDER / "campaign=words" / f"window={window_name(0)}").iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"alpha", b"alphb", 1))
    failed = cli(*looks, "--digests")
    assert failed.status == 1
    assert str(path) in failed.out
    assert "damaged" in failed.out
    path.unlink()
    failed = cli(*looks)
    assert failed.status == 1
    assert f"{path} is missing" in failed.out
    assert "do not agree" in cli("doctor", "--config", site.config).out
    path.write_bytes(whole)
    done(*looks, "--digests")


def test_counts_of_discovery_that_cannot_be_are_refused_wherever_they_are_read(made: Site, tmp_path: Path) -> None:
    site = made.copied(tmp_path / "site")
    (path,) = (site.store / "results" / "settings").glob("*/*/found.csv")
    with path.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    for count in ("-1e300", "1e300", "1"):
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, lines[0])
            writer.writeheader()
            writer.writerows({**line, "count": count} for line in lines)
        says = [str(path), "count that no bin"]
        refused("ask", "new", "--config", site.config, "--campaign", "settings", says=says)
        assert says[1] in page_of(site.deployment, at(2.2), Span(100))


def test_a_flipped_bit_is_told_and_never_another_number(made: Site, tmp_path: Path) -> None:
    root = Path(shutil.copytree(made.store / FOLDER / "campaign=settings", tmp_path / FOLDER / "campaign=settings"))
    (path,) = root.rglob("*.parquet")
    whole, before = path.read_bytes(), read(tmp_path / FOLDER)
    drawn = Random(3)
    told = 0
    for _ in range(300):
        changed = bytearray(whole)
        changed[drawn.randrange(len(whole))] ^= 1 << drawn.randrange(8)
        path.write_bytes(changed)
        try:
            after = read(tmp_path / FOLDER)
        except FormatError:
            told += 1
        else:
            # As when the name of the digest is another one.
            assert after.equals(before)
    assert told > 290
