"""No printed account claims more than it holds: what is spent is rounded up, what remains is rounded down."""

from __future__ import annotations

from hushcount.maths.figures import rounded_down, rounded_up
from hushcount.privacy.composition import Loss
from pipelines.console.job_results import pair, remaining
from pipelines.outputs.account import Account, Spent


def test_what_is_spent_is_rounded_up_and_what_remains_down() -> None:
    spent = Spent(0.0843211, 3.00001e-7, "joint", 30, "client")
    assert pair(spent) == "(0.08433, 3.001e-07)"
    account = Account(None, spent, Loss(0.9156789, 6.99999e-7), None)
    assert remaining(account) == "(0.9156, 6.999e-07)"
    assert remaining(Account(None, spent, None, None)) == "none set"


def test_a_number_of_four_digits_stays_as_it_is() -> None:
    for value in (0.0, 1.0, 0.1234, 3e-7, 1e-300):
        assert rounded_up(value) == rounded_down(value) == f"{value:.4g}"
