"""The actions of a run of the schedule, as the run reports them at its end."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Done:
    """The actions of a run.

    Attributes:
        announced: a sentence for each change of length or grace that applies to later windows.
        closed: windows, as CAMPAIGN/WINDOW.
        waiting: a sentence for each stream whose reports wait although their window has closed, and for each campaign
            without a file. Each sentence says how to prevent the loss of the reports.
        hops: the jobs that were run, each as CAMPAIGN/BATCH HOP.
        results: windows with new estimates, as CAMPAIGN/WINDOW.
        seconds: how long each job in `hops` took, by the job's name there.
        published: epochs, as CAMPAIGN/EPOCH.
        review: the number of newly discovered values that wait for the operator's review, as CAMPAIGN: NUMBER.
        deleted: what retention deleted, as CAMPAIGN/BATCH FOLDER or CAMPAIGN/EPOCH-FINGERPRINT/WINDOW segments.
        dropped: a sentence for each segment that this run dropped as too late or gave up.
        stopped: campaigns whose log lacks entries, or may lack entries, so that no new entry may be put there.
        problems: sentences. If there is any problem, the run has failed, although it did everything else.
    """

    announced: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    hops: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    published: list[str] = field(default_factory=list)
    review: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def is_quiet(self) -> bool:
        """Whether the run did nothing, and nothing failed or was lost; reports may wait."""
        return self == Done(waiting=self.waiting)
