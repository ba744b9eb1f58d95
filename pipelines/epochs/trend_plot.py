"""The chart of a trend: a line for each item, with a band for its interval."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa

from hushcount.collection.windows import window_start
from hushcount.errors import UsageError
from hushcount.formats.whole_files import write_new

_ENDINGS = (".png", ".svg")
_FILE_MODE = 0o600


def write_plot(path: Path, table: pa.Table, items: list[str]) -> None:
    """Draw the shares of items over windows, each in the interval of its row, into a new file.

    Raises:
        UsageError: another ending, or the file is there.
    """
    if path.suffix not in _ENDINGS:
        raise UsageError(f"plot is {path}, must end in {' or '.join(_ENDINGS)}")
    # Without pyplot, which would look for a screen and keep figures alive.
    from matplotlib.figure import Figure

    sheet = Figure(figsize=(9.6, 5.4), layout="constrained")
    axes = sheet.add_subplot()
    rows = table.to_pylist()
    for item in items:
        line = sorted((row for row in rows if row["item"] == item), key=lambda row: (row["window"], row["epoch"]))
        when = np.array([window_start(row["window"]).replace(tzinfo=None) for row in line], dtype="datetime64[s]")
        shares = [row["count"] / row["reports"] for row in line]
        (drawn,) = axes.plot(when, shares, marker="o", markersize=3, label=item)
        low = [row["low"] / row["reports"] for row in line]
        high = [row["high"] / row["reports"] for row in line]
        axes.fill_between(when, low, high, color=drawn.get_color(), alpha=0.15, linewidth=0)
    axes.set_ylabel("share of reports, with its interval")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    sheet.autofmt_xdate()
    buffer = io.BytesIO()
    metadata = {"Software": None} if path.suffix == ".png" else {"Date": None}
    sheet.savefig(buffer, format=path.suffix[1:], dpi=110, metadata=metadata)
    try:
        write_new(path, buffer.getvalue(), _FILE_MODE)
    except FileExistsError:
        raise UsageError(f"plot {path} exists: give another name") from None
