"""Beam's transforms by their meaning, at once and in this process: a job's own graph in milliseconds.

A job builds its real graph on it, so that nothing of a job is written twice: its DoFns, its order and its files are its
own. What an engine adds (bundles that run again, workers, checkpoints) is not here: tests/engines and tests/faults have
that.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsSideInput, PBegin, PCollection, TaggedOutput
from apache_beam.transforms.core import CombineGlobally, Windowing, _MultiParDo
from apache_beam.transforms.ptransform import PTransform, _NamedPTransform
from apache_beam.transforms.window import GlobalWindow, GlobalWindows

from hushcount.errors import HushcountError
from pipelines.engine.runner import Engine
from pipelines.files.storage_errors import StorageError


class PlainParDo(PTransform):  # type: ignore[misc]
    """`beam.ParDo` without the look at a function's source and types that costs an engine's graph milliseconds."""

    def __init__(self, fn: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__("")
        self.fn, self.args, self.kwargs = fn, args, kwargs

    def with_outputs(self, *tags: str, main: str | None = None) -> _MultiParDo:
        return _MultiParDo(self, tags, main)


class _Called(beam.DoFn):  # type: ignore[misc]
    def __init__(self, function: Callable[..., Any], one: bool) -> None:
        self._function, self._one = function, one

    def process(self, element: Any, *args: Any, **kwargs: Any) -> Any:
        made = self._function(element, *args, **kwargs)
        return [made] if self._one else made


def plain_map(function: Callable[..., Any], *args: Any, **kwargs: Any) -> PlainParDo:
    """`beam.Map`."""
    return PlainParDo(_Called(function, True), *args, **kwargs)


def plain_flat_map(function: Callable[..., Any], *args: Any, **kwargs: Any) -> PlainParDo:
    """`beam.FlatMap`."""
    return PlainParDo(_Called(function, False), *args, **kwargs)


_ONE_WINDOW = Windowing(GlobalWindows())


class Values(PCollection):  # type: ignore[misc]  # apache_beam ships no types
    """A collection whose elements are there."""

    def __init__(self, pipeline: PlainPipeline, values: list[Any]) -> None:
        super().__init__(pipeline)
        self.values = values
        self._windowing = _ONE_WINDOW


class PlainPipeline:
    """What is applied to it is done."""

    runner = None

    def __or__(self, transform: Any) -> Any:
        return PBegin(self) | transform

    def apply(self, transform: Any, given: Any = None, label: str | None = None) -> Any:
        """Do what a transform means to what it is given."""
        if isinstance(transform, _NamedPTransform):
            return self.apply(transform.transform, given)
        if isinstance(transform, _MultiParDo):
            return Outputs(self, transform, _through(transform._do_transform, given.values))
        for kind, meaning in _MEANINGS.items():
            if type(transform) is kind:
                return Values(self, meaning(transform, given))
        return transform.expand(given)


class Outputs:
    """What a transform of several outputs gave, by name."""

    def __init__(self, pipeline: PlainPipeline, transform: Any, by_tag: dict[str | None, list[Any]]) -> None:
        self._pipeline, self._main, self._by_tag = pipeline, transform._main_tag, by_tag

    def __getattr__(self, name: str) -> Values:
        return Values(self._pipeline, self._by_tag[None if name == self._main else name])

    __getitem__ = __getattr__


def _through(transform: PlainParDo, values: list[Any]) -> dict[str | None, list[Any]]:
    """Return what a DoFn gives for all elements as one bundle, by output."""
    fn = transform.fn
    args = [_side(value) for value in transform.args]
    kwargs = {name: _side(value) for name, value in transform.kwargs.items()}
    if _wants_window(type(fn)):
        kwargs["window"] = GlobalWindow()
    found: dict[str | None, list[Any]] = defaultdict(list)

    def put(outputs: Any) -> None:
        for one in outputs or ():
            if isinstance(one, TaggedOutput):
                found[one.tag].append(one.value)
            else:
                found[None].append(one)

    fn.setup()
    fn.start_bundle()
    for value in values:
        put(fn.process(value, *args, **kwargs))
    put(fn.finish_bundle())
    fn.teardown()
    return found


def _side(value: Any) -> Any:
    return value.pvalue.values[0] if isinstance(value, AsSideInput) else value


@cache
def _wants_window(kind: type) -> bool:
    parameters = inspect.signature(kind.process).parameters
    return "window" in parameters and parameters["window"].default is beam.DoFn.WindowParam


def _grouped(_: Any, given: Values) -> list[Any]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for key, value in given.values:
        groups[key].append(value)
    return list(groups.items())


def _grouped_by_name(_: Any, given: dict[str, Values]) -> list[Any]:
    groups: dict[Any, dict[str, list[Any]]] = defaultdict(lambda: {name: [] for name in given})
    for name, part in given.items():
        for key, value in part.values:
            groups[key][name].append(value)
    return list(groups.items())


def _combined(fn: Any, values: list[Any]) -> Any:
    fn.setup()
    sums = fn.create_accumulator()
    for value in values:
        sums = fn.add_input(sums, value)
    return fn.extract_output(fn.compact(fn.merge_accumulators([sums])))


_MEANINGS: dict[type, Any] = {
    beam.Create: lambda transform, _: list(transform.values),
    beam.Flatten: lambda _, given: [value for part in given for value in part.values],
    beam.Reshuffle: lambda _, given: given.values,
    beam.GroupByKey: _grouped,
    beam.CoGroupByKey: _grouped_by_name,
    PlainParDo: lambda transform, given: _through(transform, given.values)[None],
    CombineGlobally: lambda transform, given: [_combined(transform.fn, given.values)],
    beam.CombinePerKey: lambda transform, given: [
        (key, _combined(transform.fn, values)) for key, values in _grouped(None, given)
    ],
}


@contextmanager
def pipeline(_: Engine, job: str) -> Iterator[Any]:
    """Stand in for `Engine.pipeline`; what a graph raises is told as by an engine."""
    try:
        yield PlainPipeline()
    except HushcountError:
        raise
    except Exception as error:
        raise StorageError(f"the {job} job failed and released nothing; the input is untouched: {error}") from error


def instead_of_beam(put: Callable[[object, str, Any], None]) -> None:
    """Let jobs of this process run here at once.

    Args:
        put: sets an attribute, as `MonkeyPatch.setattr` does.
    """
    put(Engine, "pipeline", pipeline)
    put(beam, "ParDo", PlainParDo)
    put(beam, "Map", plain_map)
    put(beam, "FlatMap", plain_flat_map)
