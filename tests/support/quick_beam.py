"""What Beam works out anew for each step of each job, kept: half of the time of a small job on its own engine."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from types import MethodType
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms import core

_READ_OPTIONS = PipelineOptions.__init__
_ARGUMENTS_OF = core.get_function_args_defaults
_of_methods: dict[object, Any] = {}


def let_beam_remember(put: Callable[[object, str, Any], None]) -> None:
    """Let Beam read the same options, and inspect the same method, once; `put` sets an attribute."""
    put(PipelineOptions, "__init__", _read_options)
    put(core, "get_function_args_defaults", _arguments_of)


def _read_options(self: PipelineOptions, flags: object = None, **kwargs: Any) -> None:
    if kwargs or not isinstance(flags, list):
        _READ_OPTIONS(self, flags, **kwargs)
    else:
        vars(self).update(deepcopy(_options(type(self), tuple(flags))), _flags=flags)


@cache
def _options(kind: type[PipelineOptions], flags: tuple[str, ...]) -> dict[str, Any]:
    options = kind.__new__(kind)
    _READ_OPTIONS(options, list(flags))
    return vars(options)


def _arguments_of(function: Any) -> Any:
    if not isinstance(function, MethodType):
        return _ARGUMENTS_OF(function)
    # A method has the same arguments in every instance.
    if function.__func__ not in _of_methods:
        _of_methods[function.__func__] = _ARGUMENTS_OF(function)
    return _of_methods[function.__func__]
