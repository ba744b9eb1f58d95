"""`hushcount evaluate` says what is missing, and the table of its settings what is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evaluator.settings import EvaluatorPart
from tests.evaluator.running import keys_of, make_asked_site, write_evaluator
from tests.shuffler.collector.running import LONG, write_config
from tests.support.jobs import refused


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    command = ("evaluate", "--config", site.config)
    (site.base / "verifier").chmod(0o644)
    refused(*command, says=("tokens", "verifier"))
    (site.base / "verifier").unlink()
    refused(*command, says=("tokens file", "No such file"))
    shutil.rmtree(keys_of(site))
    refused(*command, says=("hushcount keys new --role evaluator",))
    write_evaluator(site, LONG, {"most_evaluations_a_client": 0})
    refused(*command, says=("evaluator.most_evaluations_a_client",))
    write_config(site, LONG, {})
    refused(*command, says=("[evaluator]",))


def test_only_clients_that_are_told_apart_have_a_limit(subtests: pytest.Subtests) -> None:
    for settings, most in [
        ({}, 20),
        ({"most_evaluations_a_client": 3}, 3),
        ({"authentication": "none"}, None),
        ({"authentication": "bearer", "tokens": "tokens"}, None),
    ]:
        with subtests.test(settings=settings):
            assert EvaluatorPart(name="one", **settings).evaluations_a_client == most


def test_a_limit_of_clients_that_nothing_tells_apart_is_refused() -> None:
    with pytest.raises(ValueError, match="authentication client-token"):
        EvaluatorPart(name="one", authentication="none", most_evaluations_a_client=20)
