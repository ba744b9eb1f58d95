"""Series that the rules of deploy/monitoring are tested by: nothing is wrong; and one fault for each of them."""

from __future__ import annotations

from collections.abc import Mapping

HOURS = 8
"""What the series of a case last; each alert is looked for at their end."""
STEP = 5
"""Minutes between two values, and between two looks at the rules."""
DAY = 86_400
Series = Mapping[str, str]
"""Values by series, in promtool's notation: 0+2x3 is 0 2 4 6, and 1x3 is 1 1 1 1."""


def lasting(value: float | str) -> str:
    return f"{value}x{HOURS * 60 // STEP}"


def since(minutes: int, before: float | str, after: float | str) -> str:
    """Return values that change so long before the end."""
    return f"{before}x{(HOURS * 60 - minutes) // STEP - 1} {after}x{minutes // STEP}"


COLLECTOR, EVALUATOR, RUN, CAMPAIGN = (
    '{instance="c:8080", job="hushcount-collector"}',
    '{instance="e:8081", job="hushcount-evaluator"}',
    '{run="shuffler"}',
    '{run="shuffler", campaign="words"}',
)
STREAM = '{run="shuffler", campaign="words", stream="reports"}'
LATE = 'hushcount_run_collected_reports{run="shuffler", campaign="words", stream="reports", state="too_late"}'
GOOD: Series = {
    f"up{COLLECTOR}": since(0, 1, 0),
    f"up{EVALUATOR}": since(0, 1, 0),
    f"hushcount_collector_ready{COLLECTOR}": since(0, 1, 0),
    f"hushcount_collector_free_bytes{COLLECTOR}": lasting(5e10),
    f"hushcount_collector_journal_failures_total{COLLECTOR}": since(30, 0, 1),
    f"hushcount_collector_reports_waiting{COLLECTOR}": lasting(40_000),
    f"hushcount_collector_store_failures_total{COLLECTOR}": since(5, 0, 1),
    f"hushcount_collector_local_upload_failures_total{COLLECTOR}": lasting(0),
    f"hushcount_collector_pending_uploads{COLLECTOR}": since(50, 0, 2),
    f"hushcount_collector_damaged_frames_total{COLLECTOR}": lasting(0),
    f"hushcount_collector_damaged_counts_total{COLLECTOR}": lasting(0),
    f"hushcount_evaluator_ready{EVALUATOR}": since(0, 1, 0),
    f"hushcount_evaluator_failed_writes_total{EVALUATOR}": lasting(0),
    f"hushcount_evaluator_store_failures_total{EVALUATOR}": since(40, 0, 1),
    f"hushcount_run_last_look_timestamp_seconds{RUN}": lasting(HOURS * 3600 - 3000),
    f"hushcount_run_problems{RUN}": since(20, 0, 1),
    f"hushcount_run_oldest_undone_window_end_timestamp_seconds{CAMPAIGN}": lasting((HOURS - 5) * 3600),
    f"hushcount_run_differences{CAMPAIGN}": since(20, 0, 1),
    f"hushcount_run_last_chance_reports{STREAM}": lasting(0),
    # What was too late yesterday is no news.
    LATE: since(400, 0, 60),
    # The budget renews before it is used up.
    f"hushcount_run_ledger_windows_left{CAMPAIGN}": lasting(5),
    f"hushcount_run_ledger_windows_until_renewal{CAMPAIGN}": lasting(5),
    'hushcount_run_ledger_windows_left{run="shuffler", campaign="other"}': lasting(7),
    'hushcount_run_key_expires_timestamp_seconds{run="shuffler", campaign="words", role="analyzer"}': lasting(15 * DAY),
}
"""Nothing is wrong, or not for long enough to tell anybody."""
GONE = "_"
"""In place of values: the series is not there."""
FAULTS: tuple[tuple[str, Series], ...] = (
    ("HushcountCollectorAbsent", {f"up{COLLECTOR}": since(10, 1, 0)}),
    ("HushcountCollectorAbsent", {f"up{COLLECTOR}": GONE}),
    ("HushcountCollectorNotReady", {f"hushcount_collector_ready{COLLECTOR}": since(10, 1, 0)}),
    ("HushcountCollectorDiskLow", {f"hushcount_collector_free_bytes{COLLECTOR}": since(10, 5e10, 9e8)}),
    ("HushcountCollectorJournalFails", {f"hushcount_collector_journal_failures_total{COLLECTOR}": since(5, 3, 4)}),
    ("HushcountCollectorJournalBehind", {f"hushcount_collector_reports_waiting{COLLECTOR}": since(5, 0, 60_000)}),
    ("HushcountCollectorStoreFails", {f"hushcount_collector_store_failures_total{COLLECTOR}": since(30, 0, "0+1")}),
    (
        "HushcountCollectorStoreFails",
        {f"hushcount_collector_local_upload_failures_total{COLLECTOR}": since(30, 0, "0+1")},
    ),
    ("HushcountCollectorUploadsWait", {f"hushcount_collector_pending_uploads{COLLECTOR}": since(70, 0, 2)}),
    ("HushcountCollectorJournalDamaged", {f"hushcount_collector_damaged_frames_total{COLLECTOR}": lasting(1)}),
    ("HushcountCollectorJournalDamaged", {f"hushcount_collector_damaged_counts_total{COLLECTOR}": lasting(1)}),
    ("HushcountEvaluatorAbsent", {f"up{EVALUATOR}": since(10, 1, 0)}),
    ("HushcountEvaluatorNotReady", {f"hushcount_evaluator_ready{EVALUATOR}": since(10, 1, 0)}),
    ("HushcountEvaluatorWritesFail", {f"hushcount_evaluator_failed_writes_total{EVALUATOR}": since(30, 0, "0+1")}),
    ("HushcountEvaluatorWritesFail", {f"hushcount_evaluator_store_failures_total{EVALUATOR}": since(30, 0, "0+1")}),
    ("HushcountRunDoesNotLook", {f"hushcount_run_last_look_timestamp_seconds{RUN}": lasting((HOURS - 1) * 3600 - 60)}),
    ("HushcountRunUnknown", {f"hushcount_run_last_look_timestamp_seconds{RUN}": GONE}),
    ("HushcountRunHasProblems", {f"hushcount_run_problems{RUN}": since(40, 0, 2)}),
    (
        "HushcountWindowNotDone",
        {f"hushcount_run_oldest_undone_window_end_timestamp_seconds{CAMPAIGN}": lasting((HOURS - 6) * 3600 - 60)},
    ),
    ("HushcountNumbersDiffer", {f"hushcount_run_differences{CAMPAIGN}": since(40, 0, 1)}),
    ("HushcountReportsTooLateSoon", {f"hushcount_run_last_chance_reports{STREAM}": since(5, 0, 49)}),
    ("HushcountReportsLost", {LATE: since(300, 0, 60)}),
    ("HushcountReportsLost", {LATE.replace("too_late", "given_up"): since(300, 0, 60)}),
    ("HushcountBudgetLow", {f"hushcount_run_ledger_windows_until_renewal{CAMPAIGN}": lasting(6)}),
    ("HushcountBudgetLow", {'hushcount_run_ledger_windows_left{run="shuffler", campaign="other"}': lasting(6)}),
    (
        "HushcountKeyEndsSoon",
        {
            'hushcount_run_key_expires_timestamp_seconds{run="shuffler", campaign="words", role="analyzer"}': lasting(
                14 * DAY
            )
        },
    ),
)
ARRIVED: tuple[tuple[str, bool], ...] = (
    ("0+100x174", False),
    ("0+100x168 16800+60x5", False),
    ("0+100x168 16800+40x5", True),
    ("0+100x168 16800x5", True),
    ("0+100x168 _x6", True),
    ("0x6 0+100x161 16100x5", False),
)
"""Reports of a collector, hour by hour for a week and six hours, and whether so few came at last that it is told.

In the last case few came in the same hours a week before.
"""
