"""Reasons for which only a collector refuses a request; the reasons of all services are in `service/refusals.py`."""

from __future__ import annotations

from service.refusals import Reason

WRONG_LENGTH = Reason("wrong_length", 400, "The body is not one or more whole reports")
MISSING_WINDOW = Reason("missing_window", 400, "The window of the client token is missing or malformed")
WINDOW_OVER = Reason("window_over", 409, "The time in which the reports may be taken is over")
WINDOW_NOT_BEGUN = Reason("window_not_begun", 425, "The window of the client token has not begun")
UNKNOWN_STREAM = Reason("unknown_stream", 404, "The campaign does not collect this stream")
TOO_MANY_REPORTS_AT_ONCE = Reason("too_many_reports_at_once", 413, "The body holds more reports than a client may send")
TOO_MANY_REPORTS = Reason("too_many_reports", 429, "The client has sent all its reports for this window")
DISK_FULL = Reason("disk_full", 503, "The collector's disk is full")
CLOCK_AHEAD = Reason("clock_ahead", 503, "The collector's clock is wrong")
