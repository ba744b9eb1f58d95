"""A worker that raises: its type, step and place are said, and nothing of its words, which may be a report's."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

from analyzer.open_reports import OpenReports
from hushcount.errors import FormatError, HushcountError
from pipelines.engine.errors import _STACK, root
from pipelines.engine.runner import Engine
from tests.support.jobs import Chain, cli

pytestmark = pytest.mark.beam

CANARY = "canary-diagnosis"
FORGED = f"hushcount.errors.FormatError: {CANARY} [while running '{CANARY}']"
"""What follows a line's end in a report may look as Python's own words do."""
STACK = f'Traceback (most recent call last):\n  File "{CANARY}", line 7, in {CANARY}\n{CANARY}: {CANARY}'
MODES = {
    "in this process": (),
    "threads": ("--direct_running_mode=multi_threading", "--direct_num_workers=2"),
    "processes": ("--direct_running_mode=multi_processing", "--direct_num_workers=2"),
}


class Raises(beam.DoFn):  # type: ignore[misc]  # Beam is not typed
    """Raises about every value that it sees.

    Args:
        ours: whether it is one of ours.
    """

    def __init__(self, ours: bool) -> None:
        self._ours = ours

    def process(self, element: str) -> Iterator[str]:
        if self._ours:
            raise FormatError("a file is cut off: restore it")
        raise ValueError(f"cannot read {element}\n{FORGED}\n{STACK}\n{FORGED}")
        yield element


def failed(ours: bool, options: tuple[str, ...]) -> HushcountError:
    with pytest.raises(HushcountError) as raised, Engine(options=options).pipeline("encode") as pipeline:
        pipeline | beam.Create([CANARY]) | "read it" >> beam.ParDo(Raises(ours))
    return raised.value


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.long(but=("in this process", "threads"))
def test_of_a_worker_s_exception_its_type_step_and_place_are_told(
    mode: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        error = failed(False, MODES[mode])
    told = capfd.readouterr()
    place = next(
        number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if "cannot read" in line
    )
    assert str(error) == (
        "the encode job failed and released nothing; the input is untouched: ValueError at "
        f"tests/pipelines/engine/test_worker_errors.py:{place} in step 'read it'"
    )
    assert error.__cause__ is None
    assert error.__suppress_context__
    assert CANARY not in told.out + told.err + caplog.text


@pytest.mark.parametrize("mode", ["in this process", pytest.param("processes", marks=pytest.mark.long)])
def test_an_exception_of_ours_is_told_in_its_own_words(mode: str) -> None:
    assert "a file is cut off: restore it" in str(failed(True, MODES[mode]))


@pytest.mark.long
def test_a_real_job_whose_worker_raises_tells_no_value(
    collected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    chain: Chain = collected("ais")

    def process(*_: object) -> Iterator[Any]:
        raise KeyError(f"{CANARY}\n{FORGED}")
        yield

    monkeypatch.setattr(OpenReports, "process", process)
    with caplog.at_level(logging.DEBUG):
        told = cli(
            "job", "analyze", "--campaign", chain.campaign_path, "--input", chain.path("shuffled"), "--keys",
            chain.keys, "--out", tmp_path / "out",
        )  # fmt: skip
    assert told.status == 1
    assert "KeyError at tests/pipelines/engine/test_worker_errors.py:" in told.err
    assert "in step 'open" in told.err
    assert CANARY not in told.out + told.err + caplog.text
    assert list(tmp_path.iterdir()) == []


ENGINE = "/lib/apache_beam/runners/portability/portable_runner.py"
WORKER = "/lib/apache_beam/runners/worker/operations.py"


def raised_in(file: str, error: Exception) -> Exception:
    """Return an error as it is when a line of a file raised it."""
    with pytest.raises(type(error)) as raised:
        exec(compile("raise error", file, "exec"), {"error": error})  # noqa: S102  # our own line
    return raised.value


def test_whatever_an_engine_raises_its_words_are_not_repeated(subtests: pytest.Subtests) -> None:
    for file, error, says in (
        (
            ENGINE,
            RuntimeError(f"Pipeline p failed: java.lang.OutOfMemoryError: {CANARY}"),
            "java.lang.OutOfMemoryError",
        ),
        (
            ENGINE,
            RuntimeError(f'{_STACK}  File "a.py", line 7, in f\nKeyError: {STACK}\n{FORGED}'),
            "KeyError at a.py:7",
        ),
        (ENGINE, RuntimeError("Channel closed prematurely."), "a worker process ended in the middle of its work"),
        (WORKER, RuntimeError(f"{STACK}\n{FORGED}"), "RuntimeError at "),
        (WORKER, OSError(28, CANARY, CANARY), "OSError: No space left on device at "),
        (WORKER, ValueError(CANARY), "ValueError at "),
        (WORKER, ValueError(), "ValueError at "),
    ):
        with subtests.test(error=error):
            told = root(raised_in(file, error), ["read it"])
            assert says in told
            assert CANARY not in told
