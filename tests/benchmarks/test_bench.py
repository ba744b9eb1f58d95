"""The benchmark measures what it says: medians, slopes, limits beside the stage, and the page that tells of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import child, cost, gates, growth, limits, machine, opening
from benchmarks.growth import Curve, Sweep, plot, slope
from benchmarks.inputs import as_shuffled, as_uploaded, counts, drawn, make_place, names, sealed, sealed_pairs, zipf
from benchmarks.machine import has_ifma
from benchmarks.measure import (
    Figures,
    Run,
    Used,
    between,
    forget_peak,
    in_child,
    peak_rss_mib,
    since_start,
    summarise,
    used,
)
from benchmarks.page import page, table
from benchmarks.record import Record, read_record, stored_record, write_record
from benchmarks.stages import AIS, BITS, BY_DEFAULT, DISCOVERY, STAGES
from hushcount.errors import HushcountError, UsageError
from hushcount.wire.blocks import Kind
from keys.opening import Outcome, open_bound
from pipelines.files.block_files import find_files
from pipelines.jobs.results import TALLY, read_tally
from sealed_lanes.words import NEEDED
from tests.support.jobs import done
from tests.support.records import key_reference
from tests.support.statistics import FAILURE, chi_square_p, draws_to_tell_apart


def a_run(cpu: float, wall: float, limit: float | None = 1.0, rss: float = 100.0) -> Run:
    return Run(1000, Used(cpu, wall), None if limit is None else Used(limit, limit / 2), rss, start=Used(0.5, 0.25))


def measured(stage: str, reports: int, items: int, root: Path) -> Run:
    """Measure a stage in this process."""
    for name in ("in", "out"):
        (root / name).mkdir()
    STAGES[stage].make(root / "in", reports, items)
    return STAGES[stage].run(root / "in", root / "out", reports)


def test_figures_are_medians_and_the_worst_memory() -> None:
    figures = summarise([a_run(4.0, 2.0, rss=90.0), a_run(2.0, 1.0, rss=120.0), a_run(3.0, 10.0)])
    assert figures.reports_per_second == 500.0
    assert figures.cpu_us_per_report == 3000.0
    assert figures.limit_reports_per_second == 2000.0
    assert figures.ratio_to_limit == 0.25
    assert figures.cpu_ratio_to_limit == pytest.approx(1 / 3)
    assert (figures.seconds_with_start, figures.cpu_seconds_with_start) == (2.25, 3.5)
    assert (figures.peak_rss_mib, figures.spread, figures.runs) == (120.0, 2.0, 3)
    alone = summarise([a_run(4.0, 2.0, limit=None)])
    assert (alone.limit_reports_per_second, alone.ratio_to_limit, alone.cpu_ratio_to_limit) == (None, None, None)


def test_what_is_used_is_cpu_and_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = used(lambda: sum(range(3_000_000)))
    assert busy.cpu > 0.01
    # The same by clocks of our own: a machine that others use too says nothing by its own.
    clocks = {"process_time": 5.0, "perf_counter": 7.0}
    for name in clocks:
        monkeypatch.setattr(time, name, partial(clocks.__getitem__, name))
    assert used(lambda: clocks.update(process_time=5.25, perf_counter=9.0)) == Used(0.25, 2.0)


def test_the_limit_is_measured_before_and_after() -> None:
    order: list[str] = []

    def limit() -> Used:
        order.append("limit")
        return Used(float(len(order)), 1.0)

    run = between(lambda: order.append("stage"), 7, limit)
    assert order == ["limit", "stage", "limit"]
    assert run.limit == Used(2.0, 1.0)
    assert run.peak_rss_mib == pytest.approx(peak_rss_mib(), rel=0.1)


@pytest.mark.long
def test_memory_is_the_peak_not_what_is_held_at_the_end() -> None:
    forget_peak()
    before = peak_rss_mib()
    np.ones(int((before + 200) * 2**17)).sum()
    assert peak_rss_mib() > before + 150


@pytest.mark.long
def test_memory_is_what_the_stage_held_not_its_input_nor_its_limit() -> None:
    def take(mib: int) -> None:
        np.ones(mib * 2**17).sum()

    def limit() -> Used:
        return used(lambda: take(300))

    forget_peak()
    held = peak_rss_mib()
    take(300)
    assert between(lambda: take(100), 1, limit).peak_rss_mib == pytest.approx(held + 100, abs=40)


def test_measuring_makes_no_input(tmp_path: Path) -> None:
    """What `run` needs and `make` did not write is missing: the two steps share nothing but the directory."""
    with pytest.raises(UsageError, match="place"):
        STAGES["encode"].run(tmp_path, tmp_path, 1000)


def test_values_to_discover_follow_zipfs_law_and_are_all_there() -> None:
    """Fails on right code with probability FAILURE, and so does the rejection of each other law."""
    ranks = np.arange(1, 21)
    law, *others = (ranks**-power / (ranks**-power).sum() for power in (1.0, 0.7, 1.3, 0.0))
    draws = max(draws_to_tell_apart(other, law) for other in others)
    found = np.bincount(zipf(20, draws + 20), minlength=20) - 1
    assert chi_square_p(found, law) > FAILURE
    assert all(chi_square_p(found, other) < FAILURE for other in others)
    assert len(np.unique(zipf(1000, 2000))) == 1000
    assert set(np.unique(zipf(1000, 1000))) >= set(range(500))


def test_reports_to_discover_are_what_clients_send_and_no_two_are_alike(tmp_path: Path) -> None:
    place, held = make_place(tmp_path / "place", DISCOVERY), np.array([3, 0, 3, 3, 7, 0])
    made = np.concatenate(list(sealed_pairs(place, held)))
    sent = sealed(place, "discovery", [f"new{rank}" for rank in held])
    key, binding = key_reference(place.keys, "aux_server").read(), place.campaign.binding("discovery")
    (pairs, outcomes, _), (wanted, *_) = open_bound(key, made, binding), open_bound(key, sent, binding)
    assert (outcomes == Outcome.ACCEPTED).all()
    assert np.array_equal(pairs, wanted)
    assert len(np.unique(made, axis=0)) == len(held)


def test_the_order_of_values_to_discover_is_random() -> None:
    """The 500 values of the tail come first by chance with probability 1 / C(1000, 500)."""
    assert sorted(zipf(1000, 1000)[:500]) != list(range(500))


@pytest.mark.long
def test_discovery_that_reveals_nothing_is_not_measured(tmp_path: Path) -> None:
    """Of four reports at most three are alike: a value is kept with probability delta (e^3 - 1) / (e - 1) = 1.2e-7."""
    with pytest.raises(HushcountError, match="no value of 4 reports"):
        measured("discover", 4, 2, tmp_path)


def test_a_curve_takes_the_place_of_that_of_its_stage_and_axis() -> None:
    def curve(stage: str, axis: str, sizes: tuple[int, ...]) -> Curve:
        return Curve(Sweep(stage, axis, sizes, 1), (), 1.0, 0.0)

    first = [curve("discover", "reports", (1, 2)), curve("encode", "items", (1, 2))]
    found = growth.merged(first, [curve("discover", "reports", (1, 3)), curve("encode", "reports", (1, 2))])
    assert [(one.sweep.stage, one.sweep.axis, one.sweep.sizes) for one in found] == [
        ("encode", "items", (1, 2)),
        ("encode", "reports", (1, 2)),
        ("discover", "reports", (1, 3)),
    ]


def test_slopes_are_exponents() -> None:
    for exponent in (0.0, 0.5, 1.0, 2.0):
        sizes = (100, 1000, 10_000)
        assert slope(sizes, [3.0 * size**exponent for size in sizes]) == pytest.approx(exponent, abs=1e-9)


def test_costs_are_cpu_time_and_bytes_at_their_prices() -> None:
    (shuffled,) = cost.costs({"shuffle": summarise([a_run(0.0036, 1.0)])}, core_hour=2.0)
    # 3.6 us a report are 3.6 CPU seconds a million, a thousandth of an hour.
    assert shuffled.cores == pytest.approx(0.002)
    assert shuffled.shuffle == pytest.approx(cost.SHUFFLED_BYTES["shuffle"] * 1e6 / 2**30 * cost.SHUFFLED_GIB)
    assert shuffled.total == shuffled.cores + shuffled.shuffle


@pytest.mark.parametrize("allowed", [gates.WITHOUT_LANES, gates.WITH_LANES], ids=["libsodium", "lanes"])
def test_a_gate_trips_at_its_ratio_and_names_the_stage(
    allowed: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "GATES", allowed)
    good = {stage: summarise([a_run(gate * 0.99, 1.0)]) for stage, gate in allowed.items()}
    assert gates.beyond(good) == []
    slow = {**good, "analyze": summarise([a_run(allowed["analyze"] * 1.01, 1.0)])}
    (sentence,) = gates.beyond(slow)
    assert sentence.startswith(f"analyze takes {allowed['analyze'] * 1.01:.2f}")
    assert set(allowed) <= set(STAGES)


def test_what_opens_or_seals_is_measured_by_both_engines_where_there_are_two() -> None:
    twice = {name.removesuffix("-libsodium") for name, stage in STAGES.items() if stage.engine}
    others = {"shuffle", "shuffle-crowded", "shuffle-public", "decode", "decode-many", "decode-million"}
    others |= {"analyze-grr", "analyze-noise"}
    others |= {f"analyze{which}-{epsilon}" for which in ("", "-public") for epsilon in (4, 8)}
    once = {name for name, stage in STAGES.items() if not stage.engine}
    assert twice == once - others
    assert set(BY_DEFAULT) == (set(STAGES) if has_ifma() else once)
    assert others | {"analyze", "analyze-few", "discover", "encode", "end-to-end"} <= set(STAGES)


@pytest.mark.parametrize("engine", ["", "libsodium"])
def test_a_stage_runs_with_its_engine_whatever_the_shell_says(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: Path, __: Path, reports: int) -> Run:
        return Run(reports, Used(float(os.environ.get("HUSHCOUNT_OPENING", "") == engine), 1.0), None, 1.0)

    monkeypatch.setenv("HUSHCOUNT_OPENING", "something")
    monkeypatch.setitem(STAGES, "shuffle", replace(STAGES["shuffle"], run=run, engine=engine))
    monkeypatch.setattr(sys, "argv", ["child", "run", "shuffle", "7", str(tmp_path), str(tmp_path)])
    child.main()
    said = json.loads(capsys.readouterr().out)
    assert (said["reports"], said["stage"]["cpu"]) == (7, 1.0)
    assert said["start"]["cpu"] > 0.0


@pytest.mark.long
def test_kernels_of_both_engines_are_measured_where_there_are_two() -> None:
    found = opening.figures(16, 1)
    assert len(found) == (9 if has_ifma() else 5)
    assert all(us > 0.0 for us in found.values())


@pytest.mark.long
def test_a_process_that_measures_starts_without_the_compiler() -> None:
    """Where the lanes are made, loading it is a part of what the stage takes."""
    code = "import sys, benchmarks.child; print('llvmlite' in sys.modules, 'numba' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout.split() == ["False", "False"]


def test_the_start_of_a_process_is_counted() -> None:
    """Each clock twice around our own: what a busy machine adds lies between the two."""
    before, own, after = since_start(), time.process_time(), since_start()
    assert before.cpu <= own <= after.cpu
    assert 0.0 < before.wall <= after.wall < 1e6
    code = "import time; time.sleep(0.1); from benchmarks.measure import since_start; print(since_start().wall)"
    fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert float(fresh.stdout) >= 0.1


def test_a_stage_that_another_engine_opened_is_not_measured(
    subtests: pytest.Subtests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for lanes, libsodium, rescued, off, right in (
        (50_000, 0, 0, "", True),
        (0, 50_000, 0, "", False),
        (50_000, 0, 1, "", False),
        (0, 2000, 0, "", True),
        (2000, 0, 0, "", False),
        (0, 50_000, 0, "libsodium", True),
        (50_000, 0, 0, "libsodium", False),
    ):
        with subtests.test(lanes=lanes, libsodium=libsodium, rescued=rescued, off=off):
            monkeypatch.setenv("HUSHCOUNT_OPENING", off)
            monkeypatch.setattr(child, "has_ifma", lambda: True)
            (tmp_path / "results").mkdir(exist_ok=True)
            summary = {"opening": {"lanes": lanes, "libsodium": libsodium, "rescued": rescued}}
            (tmp_path / "results" / "summary.json").write_text(json.dumps(summary))
            with nullcontext() if right else pytest.raises(HushcountError, match="boxes"):
                child.require_engine(tmp_path)
            monkeypatch.setattr(child, "has_ifma", lambda: False)
            if not lanes:
                child.require_engine(tmp_path)


def test_the_machine_is_told_with_its_lanes(
    subtests: pytest.Subtests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(NEEDED) == machine.IFMA
    for flags, has in (("fpu avx512f avx512ifma", True), ("fpu avx512f", False), ("avx512ifma_x", False)):
        with subtests.test(flags=flags):
            cpu = tmp_path / "cpuinfo"
            cpu.write_text(f"model name\t: A Processor\nflags\t\t: {flags}\n")
            monkeypatch.setattr(machine, "_CPU", cpu)
            assert machine.has_ifma() == has
            assert machine.machine().startswith(f"A Processor {'with' if has else 'without'} AVX-512 IFMA, ")
            assert "llvmlite 0." in machine.machine()


def test_the_stored_record_is_shown_whole_on_a_machine_of_another_kind() -> None:
    """It was made with lanes; a processor without them knows its stages too."""
    record = stored_record(Path(child.__file__).parent)
    text = page(record, [])
    assert any(name.endswith("-libsodium") for name in record.measured)
    assert all(f"\n| `{name}` |" in text for name in record.measured)


@pytest.mark.long
def test_limits_do_the_work_that_they_are_named_for(tmp_path: Path) -> None:
    """Sealing is two products on the curve and opening one, so that each costs more than a hash would."""
    sealing, opening = limits.sealing(100, 5000), limits.opening(100, 5000)
    assert sealing.cpu > opening.cpu > 0.025
    place = make_place(tmp_path / "place", BITS)
    source = f"{as_uploaded(place, 1000, 1)}/reports"
    assert limits.copying(source, Kind.REPORT_ENVELOPES, tmp_path).cpu > 0.0
    assert not list(tmp_path.glob("copy-*"))


def test_inputs_are_what_the_hop_before_writes(tmp_path: Path) -> None:
    place = make_place(tmp_path / "place", AIS.over(50))
    assert place.campaign.require_frequency().encoder.domain == 50
    boxes = sealed(place, "reports", drawn(names(49), 30))
    out = as_shuffled(place, "reports", (boxes[:count] for count in counts(70, 30)))
    done(
        "job",
        "analyze",
        "--campaign",
        place.campaign_path,
        "--input",
        out,
        "--keys",
        place.keys,
        "--out",
        tmp_path / "results",
    )
    assert json.loads((tmp_path / "results" / "summary.json").read_text())["accepted"] == 70


def test_inputs_in_public_strata_are_in_all_of_them(tmp_path: Path) -> None:
    """A stratum lacks 4,000 random reports with a probability below 4 * (3/4)**4000."""
    place = make_place(tmp_path / "place", replace(AIS.over(50), strata=4))
    boxes = sealed(place, "reports", drawn(names(49), 4000))
    job = ("--campaign", place.campaign_path, "--input")
    as_shuffled(place, "reports", [boxes, boxes])
    done("job", "analyze", *job, place.shuffled, "--keys", place.keys, "--out", tmp_path / "results")
    uploads = make_place(tmp_path / "uploads", replace(BITS, strata=4))
    job = ("--campaign", uploads.campaign_path, "--input", as_uploaded(uploads, 4000, 1))
    done("job", "shuffle", *job, "--out", tmp_path / "shuffled")
    atoms = json.loads((tmp_path / "shuffled" / "summary.json").read_text())["atoms"]
    assert [atom["strata"] for atom in atoms] == [[stratum] for stratum in range(4)]
    assert sum(atom["reports"] for atom in atoms) == 4000
    tally = read_tally(str(tmp_path / "results" / TALLY), place.campaign)
    assert [atom.strata for atom in tally.atoms] == [(stratum,) for stratum in range(4)]
    assert tally.reports == 8000


def test_uploads_have_as_many_clients_as_asked_for(tmp_path: Path) -> None:
    place = make_place(tmp_path / "place", BITS, cap=2)
    source = as_uploaded(place, 1000, 5)
    assert sum(file.header.records for file in find_files(f"{source}/reports", Kind.REPORT_ENVELOPES)) == 1000
    out = tmp_path / "mixed"
    done("job", "shuffle", "--campaign", place.campaign_path, "--input", source, "--out", out)
    # 200 clients with five reports each, two of which go on.
    assert json.loads((out / "summary.json").read_text())["accepted"] == 400


@pytest.mark.parametrize("stage", ["shuffle", "analyze", "analyze-noise", "encode-discovery", "decode"])
@pytest.mark.long
def test_a_stage_has_its_limit_beside_it(stage: str, tmp_path: Path) -> None:
    run = measured(stage, 1000, 100, tmp_path)
    assert run.reports == 1000
    assert run.stage.cpu > 0.0
    assert (run.limit is None) == (stage == "decode")
    assert run.bins is None


@pytest.mark.long
def test_a_stage_is_measured_in_a_process_of_its_own() -> None:
    run = in_child("discover", 1000, 100)
    assert run.reports == 1000
    assert run.stage.cpu > 0.0
    assert (run.bins or 0) > 0
    assert 100.0 < run.peak_rss_mib < 1000.0


@pytest.mark.long
def test_a_stage_that_fails_says_why() -> None:
    with pytest.raises(HushcountError, match=r"stage analyze failed: .*items"):
        in_child("analyze", 1000, 0)


@pytest.mark.long
def test_what_is_measured_is_printed_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page"
    few = ("--reports", "2000", "--repeats", "1", "--out", str(out))
    assert command.main(["shuffle", *few]) == 0
    measured = read_record(out).measured["shuffle"]
    assert measured.reports == 2000
    for text in (capsys.readouterr().out, (out / "RESULTS.md").read_text()):
        assert "shuffle" in text
        assert f"| {measured.cpu_us_per_report:.2f} |" in text
    # What is there is kept, what is named is measured again, and what comes from elsewhere is not mixed in.
    monkeypatch.setattr(command, "prepared", lambda *_: nullcontext(lambda: a_run(1.0, 1.0)))
    assert command.main(["encode", *few]) == 0
    assert list(read_record(out).measured) == ["shuffle", "encode"]
    assert "| `shuffle` |" in (out / "RESULTS.md").read_text()
    path = out / "results.json"
    path.write_text(path.read_text().replace("Python", "Cobra"))
    with pytest.raises(UsageError, match=r"Cobra.*--overwrite"):
        command.main(["shuffle", *few])
    path.write_text("{")
    with pytest.raises(UsageError, match="--overwrite"):
        command.main(["shuffle", *few])


def test_a_stage_beyond_its_gate_is_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gates, "GATES", {"encode": 2.0})
    for times, status in ((1.9, 0), (2.1, 1)):
        monkeypatch.setattr(command, "prepared", lambda *_, cpu=times: nullcontext(lambda: a_run(cpu, 1.0)))
        assert command.main(["--gate"]) == status
        assert ("encode takes 2.10 times" in capsys.readouterr().err) == (status == 1)


def test_where_nothing_can_be_written_nothing_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    for out in (taken, taken / "within", Path("/proc/bench"), Path("/proc")):
        with pytest.raises(UsageError, match=f"--out is {out}, "):
            command.main(["shuffle", "--out", str(out)])
        assert "its input" not in capsys.readouterr().err


def test_a_wrong_stage_or_number_is_refused_with_what_may_be_said() -> None:
    for words, says in (
        (["shufle"], f"stage is 'shufle', must be one of {', '.join(STAGES)}"),
        (["--reports", "999"], "--reports is 999, must be in 1,000..100,000,000"),
        (["--repeats", "0"], "--repeats is 0, must be in 1..1,000"),
    ):
        with pytest.raises(UsageError) as caught:
            command.main(words)
        assert str(caught.value) == says


@pytest.mark.long
def test_the_page_has_every_part_of_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = Sweep("shuffle", "reports", (1000, 10_000), 100)
    grown = a_run(1.0, 1.0)
    monkeypatch.setattr(growth, "in_child", lambda _, reports, __: replace(grown, stage=Used(reports / 1e6, 1.0)))
    said: list[str] = []
    curves = growth.grow(said.append, (sweep,))
    assert said == ["shuffle, 1,000 reports", "shuffle, 10,000 reports"]
    assert curves[0].cpu_slope == pytest.approx(1.0)
    revealing = [replace(a_run(4.0, 2.0), bins=bins) for bins in (4321, 1234)]
    measured: dict[str, Figures] = {"shuffle": summarise([a_run(4.0, 2.0)]), "discover": summarise(revealing)}
    write_record(tmp_path, Record(measured=measured, curves=curves))
    assert read_record(tmp_path) == Record(measured=measured, curves=curves)
    text = page(read_record(tmp_path), cost.costs(measured))
    assert all(title in text for title in ("## Stages", "## Cost", "## How cost grows"))
    assert "| 1.00, 1.00 |" in text
    assert "`discover` kept and revealed 1,234 values or more" in text
    assert "`shuffle` kept" not in text
    noted = {name: replace(figures, note="beside others.") for name, figures in measured.items()}
    assert "\n\n`shuffle`, `discover`: beside others.\n" in page(Record(measured=noted), [])
    assert "beside others" not in text
    assert "## Beside others" not in text
    assert plot([Curve(sweep, curves[0].runs, 1.0, 0.0)]).startswith(b"\x89PNG")


def test_a_cell_with_a_bar_stays_one_cell() -> None:
    assert table(["a"], [["x|y"]]).splitlines() == ["| a |", "| --- |", "| x\\|y |"]
