"""The reasons for which a collector refuses a request: those of all services, and its own."""

from __future__ import annotations

from service.refusals import Reason, by_name

WRONG_LENGTH = Reason("wrong_length", 400, "The body is not one or more whole reports")
UNKNOWN_STREAM = Reason("unknown_stream", 404, "The campaign does not collect this stream")
TOO_MANY_REPORTS_AT_ONCE = Reason("too_many_reports_at_once", 413, "The body holds more reports than a client may send")
TOO_MANY_REPORTS = Reason("too_many_reports", 429, "The client has sent all its reports for this window")
DISK_FULL = Reason("disk_full", 503, "The collector's disk is full")
CLOCK_AHEAD = Reason("clock_ahead", 503, "The collector's clock is wrong")

REASONS = by_name(WRONG_LENGTH, UNKNOWN_STREAM, TOO_MANY_REPORTS_AT_ONCE, TOO_MANY_REPORTS, DISK_FULL, CLOCK_AHEAD)
