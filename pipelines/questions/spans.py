"""The windows of a question, as options choose them: the newest, one window, or a range."""

from __future__ import annotations

from dataclasses import dataclass

from hushcount.errors import UsageError
from pipelines.questions.sources import Source


@dataclass(frozen=True)
class Span:
    """A choice of windows.

    Attributes:
        last: number of newest windows; None: the question's own number.
        window: the only window.
        first, end: the range of windows, as `Source.between` reads it.
    """

    last: int | None = None
    window: str | None = None
    first: str | None = None
    end: str | None = None

    def __post_init__(self) -> None:
        ways = {"--last": self.last, "--window": self.window, "--from or --to": self.first or self.end}
        given = [name for name, value in ways.items() if value is not None]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} choose windows in two ways: give one of them")

    @property
    def is_named(self) -> bool:
        """Whether the windows are chosen by their names, which result folders do not have."""
        return self.window is not None or self.first is not None or self.end is not None

    def of(self, source: Source) -> Source:
        """Return a source with the chosen windows only.

        Raises:
            UsageError: the text of a window means no window with results, or several; or the range has none.
        """
        if self.window is not None:
            return source.of([source.named(self.window)])
        if self.is_named:
            return source.between(self.first, self.end)
        return source if self.last is None else source.of(source.windows[-self.last :])
