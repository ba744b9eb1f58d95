"""What a run of the schedule did, as it is said when the run has ended."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Done:
    """What a run did.

    Attributes:
        announced: a sentence for each change of the windows that are to come.
        closed: windows, as CAMPAIGN/WINDOW.
        waiting: a sentence for each stream that waits though its window has closed, and for each campaign without a
            file, with what would prevent its loss.
        hops: jobs, as CAMPAIGN/BATCH HOP.
        seconds: how long each of these jobs took, by the same name.
        published: epochs, as CAMPAIGN/EPOCH.
        review: new found values that wait for the operator, as CAMPAIGN: NUMBER.
        deleted: what retention deleted, as CAMPAIGN/BATCH FOLDER or CAMPAIGN/EPOCH-FINGERPRINT/WINDOW segments.
        dropped: a sentence for each segment that is too late from now on.
        stopped: campaigns with a log that lacks entries, or may: no entry may be put there.
        problems: sentences; with any of them the run has failed, though all else was done.
    """

    announced: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    hops: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    published: list[str] = field(default_factory=list)
    review: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing was done, lost or impossible: at most something waits."""
        return self == Done(waiting=self.waiting)
