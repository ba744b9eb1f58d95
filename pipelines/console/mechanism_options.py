"""The --set options: a mechanism's parameters, and what is planned for."""

from __future__ import annotations

from hushcount.errors import UsageError
from hushcount.maths.objectives import Objective
from hushcount.oracles.parameters import Value


def parse_settings(pairs: list[str]) -> tuple[dict[str, Value], Objective]:
    """Return the parameters and the objective that --set options give.

    Raises:
        UsageError: one is not name=value, or the objective is none that can be planned for.
    """
    settings: dict[str, Value] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"--set is {pair!r}, must be name=value")
        settings[name] = _number(text)
    if "objective" in settings and "target_share" in settings and settings["objective"] != "target":
        raise UsageError(f"objective is {settings['objective']!r} with a target_share: give one of the two")
    objective = settings.pop("objective", "target" if "target_share" in settings else "l2")
    share = settings.pop("target_share", 0.0)
    if not isinstance(share, (int, float)):
        raise UsageError(f"target_share is {share!r}, must be a number in [0, 1]")
    try:
        return settings, Objective(objective, float(share))  # type: ignore[arg-type]  # checked by Objective itself
    except ValueError as error:
        raise UsageError(str(error)) from None


def _number(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
