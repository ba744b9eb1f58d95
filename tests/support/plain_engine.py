"""Beam's transforms by their meaning, at once and in this process: a job's own graph in milliseconds.

A job builds its real graph on it, so nothing of a job is written twice: its DoFns, its order and its files are its own.
Each element is in a window, as in an engine; all of a collection is there at once, and no watermark passes.
What an engine adds is not here: bundles that run again, workers, checkpoints, pickled steps. A transform
without a meaning here raises. `make test-all` runs the same tests on Beam's own engine.
"""

from __future__ import annotations

import inspect
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from traceback import format_exception_only
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsSingleton, PBegin, PCollection, PDone, TaggedOutput
from apache_beam.runners.runner import PipelineState
from apache_beam.transforms.core import CombineGlobally, Windowing, _MultiParDo
from apache_beam.transforms.ptransform import PTransform, _NamedPTransform
from apache_beam.transforms.trigger import DefaultTrigger
from apache_beam.transforms.window import FixedWindows, GlobalWindow, GlobalWindows, TimestampedValue, WindowFn
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.engine.runner import Engine, _run

_ENGINE = Engine.pipeline
_PAR_DO = beam.ParDo
_ONE_WINDOW = Windowing(GlobalWindows())


class PlainParDo(PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """`beam.ParDo` without the look at a function's source and types that costs an engine's graph milliseconds."""

    def __init__(self, fn: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__("")
        self.fn, self.raw_side_inputs = fn, (args, kwargs)

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


class Values(PCollection):  # type: ignore[misc]
    """A collection whose elements are there, each with its window, once its pipeline has run."""

    def __init__(self, pipeline: PlainPipeline) -> None:
        super().__init__(pipeline)
        self.values: list[tuple[Any, Any]] = []
        self._windowing = _ONE_WINDOW


class Outputs:
    """Outputs of a transform that has several, by name."""

    def __init__(self, pipeline: PlainPipeline, main: str | None) -> None:
        self._main = main
        self._by_tag: dict[str | None, Values] = defaultdict(lambda: Values(pipeline))

    def __getattr__(self, name: str) -> Values:
        return self._by_tag[None if name == self._main else name]

    __getitem__ = __getattr__

    def put(self, values: dict[str | None, list[tuple[Any, Any]]]) -> None:
        """Give each output its elements."""
        for tag, found in values.items():
            self._by_tag[tag].values = found


class PlainPipeline:
    """A pipeline that does its steps in the order in which they were applied."""

    runner = None

    def __init__(self) -> None:
        self.applied_labels: set[str] = set()
        self._steps: list[tuple[str, Callable[[], None]]] = []
        self._labels: list[str] = []

    def __or__(self, transform: Any) -> Any:
        return PBegin(self) | transform

    def apply(self, transform: Any, given: Any = None, label: str | None = None) -> Any:
        """Note what a transform means to its input, and return its output."""
        if isinstance(transform, _NamedPTransform):
            return self.apply(transform.transform, given, label or transform.label)
        self._labels.append(label or transform.label or type(transform).__name__)
        name = "/".join(self._labels)
        self.applied_labels.add(name)
        try:
            if isinstance(transform, _MultiParDo):
                outputs = Outputs(self, transform._main_tag)
                self._steps.append((name, lambda: outputs.put(_through(transform._do_transform, given.values))))
                return outputs
            if type(transform) in _MEANINGS:
                meaning, made = _MEANINGS[type(transform)], Values(self)
                self._steps.append((name, lambda: setattr(made, "values", meaning(transform, given))))
                return made
            return _known(transform.expand(given), transform)
        finally:
            self._labels.pop()

    def run(self) -> PlainPipeline:
        """Do all steps; an exception names its step, as Beam's do."""
        for name, step in self._steps:
            try:
                step()
            except Exception as error:
                note = f" [while running '{name}']"
                try:
                    named = type(error)(error.args[0] + note, *error.args[1:])
                except Exception:
                    named = RuntimeError(format_exception_only(error)[-1].strip() + note)
                raise named.with_traceback(error.__traceback__) from None
        return self

    def wait_until_finish(self) -> str:
        return str(PipelineState.DONE)

    def cancel(self) -> None:
        """Do nothing: all is done."""


def _known(made: Any, transform: Any) -> Any:
    """Return the output of a composite transform; a primitive one of Beam, which no engine is here for, raises."""
    parts = made.values() if isinstance(made, dict) else made if isinstance(made, tuple) else [made]
    if all(part is None or isinstance(part, (Values, Outputs, PDone)) for part in parts):
        return made
    raise NotImplementedError(f"{transform} has no meaning in tests/support/plain_engine.py: add it, or mark the test")


def _through(transform: Any, values: list[tuple[Any, Any]]) -> dict[str | None, list[tuple[Any, Any]]]:
    """Return what a DoFn gives for all elements as one bundle, by output; each stays in its element's window.

    A time that a DoFn gives an element stands for its window until the next WindowInto.
    """
    fn, (args, kwargs) = transform.fn, transform.raw_side_inputs
    args = [_side(value) for value in args]
    kwargs = {name: _side(value) for name, value in kwargs.items()}
    wants = _wants_window(type(fn))
    found: dict[str | None, list[tuple[Any, Any]]] = defaultdict(list)

    def put(window: Any, outputs: Any) -> None:
        for one in outputs or ():
            tag, value = (one.tag, one.value) if isinstance(one, TaggedOutput) else (None, one)
            if isinstance(value, WindowedValue):
                found[tag] += [(each, value.value) for each in value.windows]
            elif isinstance(value, TimestampedValue):
                found[tag].append((value.timestamp, value.value))
            else:
                found[tag].append((window, value))

    fn.setup()
    try:
        fn.start_bundle()
        for window, value in values:
            put(window, fn.process(value, *args, **kwargs, **({"window": window} if wants else {})))
        put(GlobalWindow(), fn.finish_bundle())
    finally:
        fn.teardown()
    return found


def _windowed(transform: Any, given: Values) -> list[tuple[Any, Any]]:
    windows = transform.windowing.windowfn
    if type(windows) not in (FixedWindows, GlobalWindows) or transform.windowing.triggerfn != DefaultTrigger():
        raise NotImplementedError(f"{transform.windowing} has no meaning in tests/support/plain_engine.py")
    return [
        (found, value)
        for window, value in given.values
        for found in windows.assign(WindowFn.AssignContext(getattr(window, "start", window)))
    ]


def _side(value: Any) -> Any:
    if isinstance(value, AsSingleton):
        ((_, only),) = value.pvalue.values
        return only
    if isinstance(value, beam.pvalue.AsSideInput):
        raise NotImplementedError(f"{type(value).__name__} has no meaning in tests/support/plain_engine.py")
    return value


@cache
def _wants_window(kind: type) -> bool:
    """Return whether a DoFn asks for its window; state, timers, restrictions and times are an engine's."""
    asked = {
        name: parameter.default
        for name, parameter in inspect.signature(kind.process).parameters.items()
        if isinstance(parameter.default, beam.core._DoFnParam)
    }
    if asked not in ({}, {"window": beam.DoFn.WindowParam}):
        raise NotImplementedError(f"{kind.__name__} asks for {', '.join(asked)}: only an engine has that")
    return bool(asked)


def _grouped(_: Any, given: Values) -> list[tuple[Any, Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for window, (key, value) in given.values:
        groups[window, key].append(value)
    return [(window, (key, values)) for (window, key), values in groups.items()]


def _grouped_by_name(_: Any, given: dict[str, Values]) -> list[tuple[Any, Any]]:
    groups: dict[Any, dict[str, list[Any]]] = defaultdict(lambda: {name: [] for name in given})
    for name, part in given.items():
        for window, (key, value) in part.values:
            groups[window, key][name].append(value)
    return [(window, (key, parts)) for (window, key), parts in groups.items()]


def _combined(transform: Any, values: list[Any]) -> Any:
    """Return a sum that two workers made half of each, as an engine may share it out."""
    fn = beam.CombineFn.maybe_from_callable(transform.fn)
    if transform.args or transform.kwargs:
        raise NotImplementedError(f"{transform} has arguments: they have no meaning in tests/support/plain_engine.py")
    fn.setup()
    halves = []
    for half in (values[0::2], values[1::2]):
        sums = fn.create_accumulator()
        for value in half:
            sums = fn.add_input(sums, value)
        halves.append(fn.compact(sums))
    made = fn.extract_output(fn.compact(fn.merge_accumulators(halves)))
    fn.teardown()
    return made


def _combined_globally(transform: Any, given: Values) -> list[tuple[Any, Any]]:
    windows: dict[Any, list[Any]] = {GlobalWindow(): []} if transform.has_defaults else {}
    for window, value in given.values:
        windows.setdefault(window, []).append(value)
    if transform.has_defaults and len(windows) > 1:
        raise NotImplementedError(f"{transform} has a default: of a window without an element only an engine knows")
    return [(window, _combined(transform, values)) for window, values in windows.items()]


_MEANINGS: dict[type, Any] = {
    beam.Create: lambda transform, _: [(GlobalWindow(), value) for value in transform.values],
    beam.Flatten: lambda _, given: [value for part in given for value in part.values],
    beam.Reshuffle: lambda _, given: given.values,
    beam.WindowInto: _windowed,
    beam.GroupByKey: _grouped,
    beam.CoGroupByKey: _grouped_by_name,
    PlainParDo: lambda transform, given: _through(transform, given.values)[None],
    _PAR_DO: lambda transform, given: _through(transform, given.values)[None],
    CombineGlobally: _combined_globally,
    beam.CombinePerKey: lambda transform, given: [
        (window, (key, _combined(transform, values))) for window, (key, values) in _grouped(None, given)
    ],
}

_PLAIN = {"ParDo": PlainParDo, "Map": plain_map, "FlatMap": plain_flat_map}
_BEAMS = {name: getattr(beam, name) for name in _PLAIN}
_building: list[None] = []
_one_at_a_time = threading.Lock()


@contextmanager
def _plain_names() -> Iterator[None]:
    """Let `beam.ParDo` and its like be the plain ones while a graph is built; threads may build several."""
    with _one_at_a_time:
        _building.append(None)
        vars(beam).update(_PLAIN)
    try:
        yield
    finally:
        with _one_at_a_time:
            _building.pop()
            if not _building:
                vars(beam).update(_BEAMS)


@contextmanager
def pipeline(ran: Callable[[], None], engine: Engine, job: str) -> Iterator[Any]:
    """Stand in for `Engine.pipeline`, unless a test names an engine or gives it options."""
    if engine.runner != Engine().runner or engine.options:
        with _ENGINE(engine, job) as real:
            yield real
        return
    ran()
    plain = PlainPipeline()
    with _plain_names():
        yield plain
    _run(plain.run, job, plain.applied_labels)


def instead_of_beam(put: Callable[[object, str, Any], None], ran: Callable[[], None] = lambda: None) -> None:
    """Let jobs of this process run here at once.

    Args:
        put: sets an attribute, as `MonkeyPatch.setattr` does.
        ran: called before each job that runs here and not on Beam's engine.
    """
    put(Engine, "pipeline", lambda engine, job: pipeline(ran, engine, job))
