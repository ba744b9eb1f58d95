"""hushcount doctor: an evaluator protects nothing where the auxiliary server runs too."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.audit.doctor import examine
from tests.support.site import Site, at

EVALUATOR = '[evaluator]\nname = "one"\nkeys = "evaluator"\n'
APART = 'parties = ["shuffler", "analyzer"]'


def said(site: Site) -> list[tuple[str, str]]:
    checks = examine(site.deployment, at(1.2))
    return [(check.verdict, check.says) for check in checks if check.name == "evaluator apart"]


def test_the_doctor_warns_of_an_evaluator_beside_the_auxiliary_server(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True, evaluator_keys=1, tail=EVALUATOR)
    assert said(site) == [
        (
            "warning",
            "the evaluator of words and the auxiliary server run here: together they test any guess: let "
            'somebody else run the auxiliary server, and set parties = ["shuffler", "analyzer"] here',
        )
    ]


def test_it_does_not_warn_where_one_of_the_two_is_missing(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for evaluator_keys, settings, tail in [(1, APART, EVALUATOR), (1, "", ""), (0, "", EVALUATOR)]:
        with subtests.test(evaluator_keys=evaluator_keys, settings=settings):
            root = tmp_path / f"{evaluator_keys} {bool(settings)}"
            root.mkdir()
            site = Site(root, discovery=True, evaluator_keys=evaluator_keys, settings=settings, tail=tail)
            assert said(site) == []
