"""The plain engine gives what Beam's gives: the same segments, the same outputs, all but what is drawn."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from operator import add, itemgetter
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.testing.test_pipeline import TestPipeline as CheckedPipeline
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.trigger import AccumulationMode, AfterCount
from apache_beam.transforms.window import FixedWindows, GlobalWindows, Sessions, TimestampedValue
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.deployment.settings import Deployment
from pipelines.engine.runner import Engine
from pipelines.files.storage_errors import StorageError
from pipelines.schedule.run import run
from tests.model.actions import Collect, Pass
from tests.model.promises import Memory
from tests.model.seen import Output, outputs
from tests.model.world import Kind, world
from tests.support.clocks import stopped
from tests.support.jobs import BEAM
from tests.support.plain_engine import instead_of_beam

_DRAWN = ("dead_letters", "released", "bins", "ledger", "folder", "made_from", "shuffled", "log")


@pytest.mark.long
@pytest.mark.beam
def test_jobs_that_run_at_once_put_out_what_the_engine_does(tmp_path: Path) -> None:
    with world(Kind()) as here:
        for action in (Collect(), Collect(0, True), Pass()):
            action.do(here, Memory())
        shutil.copytree(here.root, tmp_path / "other")
        assert here.run() is not None
        plain = {one.folder: one for one in outputs(here)}
        here.root, here.deployment = tmp_path / "other", Deployment.read(tmp_path / "other" / "deployment.toml")
    # From here on Beam's own engine, which a world puts aside.
    assert run(here.deployment, clock=stopped(here.now())).problems == []
    real = {one.folder: one for one in outputs(here)}
    assert plain.keys() == real.keys() == {"shuffled", "released", "found", "results"}
    for folder, one in plain.items():
        assert stated(one) == stated(real[folder])
        assert drawn_apart(one) == drawn_apart(real[folder])
    for stream in ("reports", "discovery"):
        assert sorted(plain["shuffled"].records(stream)) == sorted(real["shuffled"].records(stream))
    assert plain["shuffled"].summary["rejected"] == {"duplicate": 20}
    assert plain["results"].files["estimates.csv"] == real["results"].files["estimates.csv"]


def plain(graph: Callable[[beam.Pipeline], Any]) -> list[Any]:
    """Run a graph here and return the elements of its output."""
    with pytest.MonkeyPatch.context() as patch:
        instead_of_beam(patch.setattr)
        with Engine().pipeline("test") as pipeline:
            made = graph(pipeline)
    return [value for _, value in made.values]


class Half(beam.CombineFn):  # type: ignore[misc]
    """Counts how many accumulators a sum was made of."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 1

    def add_input(self, sums: tuple[int, int], value: int) -> tuple[int, int]:
        return sums[0] + value, sums[1]

    def merge_accumulators(self, parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
        return tuple(map(sum, zip(*parts, strict=True)))  # type: ignore[return-value]

    def extract_output(self, sums: tuple[int, int]) -> tuple[int, int]:
        return sums


class Timed(beam.DoFn):  # type: ignore[misc]
    def process(self, element: int, moment: Any = beam.DoFn.TimestampParam) -> list[Any]:
        return [moment]


class Started(beam.DoFn):  # type: ignore[misc]
    """Shows in which window each element is."""

    def process(self, element: Any, window: Any = beam.DoFn.WindowParam) -> list[Any]:
        return [(window.start.seconds(), element)]


class Last(beam.DoFn):  # type: ignore[misc]
    """Yields the last element of each window at the end of its bundle."""

    def start_bundle(self) -> None:
        self._last: dict[Any, Any] = {}

    def process(self, element: Any, window: Any = beam.DoFn.WindowParam) -> None:
        self._last[window] = element

    def finish_bundle(self) -> Iterator[Any]:
        for window, element in self._last.items():
            yield WindowedValue(element, window.start, [window])


class Kept(beam.DoFn):  # type: ignore[misc]
    """Yields what it kept at the end of its bundle."""

    def start_bundle(self) -> None:
        self._kept: list[int] = []

    def process(self, element: int) -> Iterator[Any]:
        self._kept.append(element)
        yield beam.pvalue.TaggedOutput("odd" if element % 2 else "even", element)

    def finish_bundle(self) -> Iterator[Any]:
        yield GlobalWindows.windowed_value(sum(self._kept))


def numbers(pipeline: beam.Pipeline) -> Any:
    return pipeline | "numbers" >> beam.Create([3, 1, 2])


def pairs(pipeline: beam.Pipeline) -> Any:
    return pipeline | "pairs" >> beam.Create([("a", 1), ("b", 2), ("a", 3)])


def at(timed: tuple[int, Any]) -> TimestampedValue:
    return TimestampedValue(timed[1], timed[0])


def timed(pipeline: beam.Pipeline, elements: list[tuple[int, Any]], name: str = "timed") -> Any:
    """Return elements, each in the window of its second."""
    return (
        pipeline
        | name >> beam.Create(elements)
        | f"at of {name}" >> beam.Map(at)
        | f"windows of {name}" >> beam.WindowInto(FixedWindows(1))
    )


def keyed(pipeline: beam.Pipeline) -> Any:
    return timed(pipeline, [(0, ("a", 1)), (0, ("a", 2)), (7, ("a", 3)), (7, ("b", 4)), (13, ("a", 5))])


def each_window(made: Any) -> Any:
    return made | "windows seen" >> beam.ParDo(Started())


def meet(made: Any, seconds: int) -> Any:
    return made | f"windows of {seconds}" >> beam.WindowInto(FixedWindows(seconds))


def named(met: tuple[str, dict[str, Iterable[int]]]) -> tuple[str, dict[str, list[int]]]:
    return met[0], {name: sorted(values) for name, values in met[1].items()}


def ten(pipeline: beam.Pipeline) -> Any:
    return beam.pvalue.AsSingleton(pipeline | "ten" >> beam.Create([10]))


def listed(pair: tuple[str, Iterable[int]]) -> tuple[str, list[int]]:
    return pair[0], sorted(pair[1])


MEANINGS: list[tuple[Callable[[beam.Pipeline], Any], list[Any]]] = [
    (lambda p: (numbers(p) | beam.ParDo(Kept()).with_outputs("odd", "even")).odd, [3, 1]),
    (lambda p: (numbers(p), p | beam.Create([4])) | beam.Flatten(), [3, 1, 2, 4]),
    (lambda p: numbers(p) | beam.Map(add, ten(p)), [13, 11, 12]),
    (lambda p: numbers(p) | beam.CombineGlobally(Half()) | beam.Map(itemgetter(0)), [6]),
    (lambda p: p | beam.Create([]) | beam.CombineGlobally(sum).without_defaults(), []),
    (lambda p: pairs(p) | beam.GroupByKey() | beam.Map(listed), [("a", [1, 3]), ("b", [2])]),
    (lambda p: pairs(p) | beam.CombinePerKey(sum), [("a", 4), ("b", 2)]),
    # Windows: each element is in its own; what meets there meets; and other windows may take them in.
    (lambda p: each_window(timed(p, [(3, "x"), (4, "y"), (3, "z")])), [(3, "x"), (4, "y"), (3, "z")]),
    (
        lambda p: each_window((timed(p, [(3, "x")]), timed(p, [(4, "y")], "others")) | beam.Flatten()),
        [(3, "x"), (4, "y")],
    ),
    (
        lambda p: each_window(keyed(p) | beam.GroupByKey() | beam.Map(listed)),
        [(0, ("a", [1, 2])), (7, ("a", [3])), (7, ("b", [4])), (13, ("a", [5]))],
    ),
    (
        lambda p: each_window(
            {"one": keyed(p), "two": timed(p, [(7, ("a", 6))], "others")} | beam.CoGroupByKey() | beam.Map(named)
        ),
        [
            (0, ("a", {"one": [1, 2], "two": []})),
            (7, ("a", {"one": [3], "two": [6]})),
            (7, ("b", {"one": [4], "two": []})),
            (13, ("a", {"one": [5], "two": []})),
        ],
    ),
    (
        lambda p: each_window(keyed(p) | beam.CombinePerKey(sum)),
        [(0, ("a", 3)), (7, ("a", 3)), (7, ("b", 4)), (13, ("a", 5))],
    ),
    (
        lambda p: each_window(keyed(p) | beam.Values() | beam.CombineGlobally(sum).without_defaults()),
        [(0, 3), (7, 7), (13, 5)],
    ),
    (
        lambda p: each_window(meet(keyed(p) | beam.CombinePerKey(sum), 8) | "again" >> beam.CombinePerKey(sum)),
        [(0, ("a", 6)), (0, ("b", 4)), (8, ("a", 5))],
    ),
    (
        lambda p: (
            each_window(meet(keyed(p) | beam.GroupByKey() | beam.Map(listed), 8) | "again" >> beam.GroupByKey())
            | beam.Map(itemgetter(0))
        ),
        [0, 0, 8],
    ),
    (lambda p: each_window(timed(p, [(3, "x"), (4, "y")]) | beam.ParDo(Last())), [(3, "x"), (4, "y")]),
    (lambda p: each_window(timed(p, [(3, 1), (4, 2)]) | beam.Map(add, ten(p))), [(3, 11), (4, 12)]),
]


def test_transforms_mean_here_what_they_should() -> None:
    for graph, expected in MEANINGS:
        assert plain(graph) == expected
    # One bundle, whose end is seen; and a sum of two parts, as an engine may share it out.
    assert plain(lambda p: (numbers(p) | beam.ParDo(Kept()).with_outputs("odd", main="sum")).sum) == [6]
    assert plain(lambda p: numbers(p) | beam.CombineGlobally(Half())) == [(6, 2)]


@pytest.mark.long
@pytest.mark.beam
def test_transforms_mean_to_beam_what_they_mean_here() -> None:
    for graph, expected in MEANINGS:
        with CheckedPipeline(runner=BEAM[1]) as pipeline:
            assert_that(graph(pipeline), equal_to(expected))


def test_what_only_an_engine_has_raises() -> None:
    for graph in [
        lambda p: p | beam.Impulse(),
        lambda p: p | beam.Create([1]) | beam.WindowInto(Sessions(1)),
        lambda p: (
            p
            | beam.Create([1])
            | beam.WindowInto(FixedWindows(1), trigger=AfterCount(1), accumulation_mode=AccumulationMode.DISCARDING)
        ),
        lambda p: timed(p, [(3, 1), (4, 2)]) | beam.CombineGlobally(sum),
        lambda p: p | beam.Create([1]) | beam.ParDo(Timed()),
        lambda p: p | beam.Create([1]) | beam.Map(add, beam.pvalue.AsList(p | beam.Create([1]))),
        lambda p: p | beam.Create([1]) | beam.CombineGlobally(Half(), 1),
    ]:
        with pytest.raises(
            (NotImplementedError, StorageError), match=r"NotImplementedError|only an engine|has no meaning"
        ):
            plain(graph)


def test_a_step_that_fails_is_named_and_its_value_is_not() -> None:
    with pytest.raises(StorageError) as caught:
        plain(lambda p: p | beam.Create(["a secret"]) | "whole" >> beam.Map(int))
    assert "ValueError" in str(caught.value)
    assert "in step 'whole'" in str(caught.value)
    assert "a secret" not in str(caught.value)


def test_an_engine_that_is_named_or_has_options_is_beams_own() -> None:
    for engine in [Engine(runner=BEAM[1]), Engine(options=("--direct_num_workers=1",))]:
        with pytest.MonkeyPatch.context() as patch:
            instead_of_beam(patch.setattr)
            with engine.pipeline("test") as pipeline:
                assert isinstance(pipeline, beam.Pipeline)


def drawn_apart(one: Output) -> set[str]:
    """Return what an output holds; whether a bin is kept is drawn, and where none is there is no file of bins."""
    return {name.split("/")[0] for name in one.files} - {"bins"}


def stated(one: Output) -> dict[str, object]:
    """Return what a summary says, without what is drawn or is of its time."""
    return {name: value for name, value in one.summary.items() if name not in _DRAWN and name != "upstream"}
