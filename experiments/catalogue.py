"""The figures by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from experiments import (
    j_choice,
    j_communication,
    j_discovery,
    j_education,
    j_variance,
    p25_losses,
    p25_tables,
    p26_choice,
    p26_losses,
)
from experiments.figure import Figure
from hushcount.errors import UsageError

FIGURES: Mapping[str, Figure] = {
    figure.name: figure
    for figure in (
        j_choice.FIG2,
        j_variance.FIG4,
        j_choice.FIG5,
        j_variance.FIG6,
        j_communication.FIG7,
        j_education.FIG8,
        j_discovery.FIG9,
        j_discovery.FSCORE,
        p25_tables.TABLE1,
        p25_tables.TABLE2,
        p25_losses.FIG2,
        p25_losses.FIG3,
        p25_losses.FIG4,
        p26_losses.FIG1,
        p26_losses.FIG2,
        p26_choice.TABLE,
    )
}


def figures(names: Sequence[str]) -> list[Figure]:
    """Return the named figures, or all if none is named.

    Raises:
        UsageError: a name is unknown; the message lists the known names and suggests the nearest one.
    """
    for name in names:
        if name not in FIGURES:
            near = difflib.get_close_matches(name.lower(), FIGURES, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise UsageError(f"figure is {name!r}, must be one of {', '.join(FIGURES)}{hint}")
    return [FIGURES[name] for name in dict.fromkeys(names)] or list(FIGURES.values())
