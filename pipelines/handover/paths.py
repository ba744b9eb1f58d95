"""Names and paths that say what they are of: a batch's folder, a segment in the store."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hushcount.collection.epochs import folder_name
from hushcount.collection.windows import is_window

BATCH_NAME = r"(?P<window>[0-9]{8}T[0-9]{6}Z)-(?P<epoch>[0-9]{6,})-(?P<fingerprint>[0-9a-f]{16})"
"""WINDOW-EPOCH-FINGERPRINT."""
_SEGMENT_NAMES = 5


@dataclass(frozen=True, order=True)
class Batch:
    """Segments of one campaign file that are shuffled together, of one stream or of several.

    Attributes:
        window: name of the window at whose end it was made.
        epoch: of the campaign file.
        fingerprint: of the campaign file, its first 16 digits.
    """

    campaign: str
    window: str
    epoch: int
    fingerprint: str

    @property
    def file(self) -> tuple[int, str]:
        """Epoch and fingerprint: the key of its campaign file."""
        return self.epoch, self.fingerprint

    @property
    def name(self) -> str:
        """WINDOW-EPOCH-FINGERPRINT, also the name of its folders."""
        return f"{self.window}-{folder_name(*self.file)}"

    @classmethod
    def named(cls, campaign: str, name: str) -> Batch | None:
        """Return the batch of that name; None if no batch has it: operators put folders of their own beside ours."""
        match = re.fullmatch(BATCH_NAME, name)
        if match is None or not is_window(match["window"]):
            return None
        return cls(campaign, match["window"], int(match["epoch"]), match["fingerprint"])


@dataclass(frozen=True, order=True)
class WindowPath:
    """CAMPAIGN/EPOCH-FINGERPRINT/WINDOW, in the folder of segments: manifests, and segments in folders of streams.

    Attributes:
        file: EPOCH-FINGERPRINT, of its campaign file.
    """

    campaign: str
    file: str
    window: str

    @classmethod
    def of(cls, path: str) -> WindowPath:
        """Return the folder of a manifest or segment, which is named relative to the folder of segments."""
        campaign, file, window, _ = path.split("/", 3)
        return cls(campaign, file, window)

    def __str__(self) -> str:
        return f"{self.campaign}/{self.file}/{self.window}"


@dataclass(frozen=True)
class SegmentPath:
    """CAMPAIGN/EPOCH-FINGERPRINT/WINDOW/STREAM/NAME, in the folder of segments; whoever writes there may invent any.

    Attributes:
        file: EPOCH-FINGERPRINT, of its campaign file.
    """

    campaign: str
    file: str
    window: str
    stream: str
    name: str

    @classmethod
    def parse(cls, path: str) -> SegmentPath | None:
        """Return the path of a segment, relative to the folder of segments; None if it is another file's."""
        names = path.split("/")
        return cls(*names) if len(names) == _SEGMENT_NAMES and path.endswith(".blocks") else None

    def __str__(self) -> str:
        return f"{self.campaign}/{self.file}/{self.window}/{self.stream}/{self.name}"
