"""One value in two spellings, composed and decomposed, is one item from the dictionary to the analyst's question."""

from __future__ import annotations

import pytest

from tests.support.jobs import Chain, done, estimates, found, new_campaign, new_keys, summary, values_of, write_lines

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"
NEW, NEW_DECOMPOSED = "\u1ec7", "e\u0302\u0323"
EACH = 60
VALUES = values_of({COMPOSED: EACH, DECOMPOSED: EACH, "tea": EACH, NEW: EACH, NEW_DECOMPOSED: EACH})


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    root = tmp_path_factory.mktemp("spellings")
    listed = write_lines(root / "listed.txt", ["tea", DECOMPOSED])
    keys = new_keys(root / "keys")
    # At epsilon 16 of 300 reports one is another item than its client's with probability 300 * 3 / (e^16 + 2) = 1e-4.
    path = new_campaign(root / "spellings.json", keys, epsilon=16.0, dictionary=listed, discovery=1.0)
    made = Chain(path, keys)
    made.encode(write_lines(root / "values.txt", VALUES))
    made.shuffle()
    made.discover()
    return made


def test_a_client_that_spells_a_listed_value_otherwise_counts_for_it(chain: Chain) -> None:
    """Fails on right code with probability 1e-4: that more than one report is another item than its client's."""
    results = chain.analyze()
    counted = {item: round(row["count"]) for item, row in estimates(results).items()}
    assert counted == {"tea": pytest.approx(EACH, abs=1), COMPOSED: pytest.approx(2 * EACH, abs=1)}
    assert round(summary(results)["other"]["count"]) == pytest.approx(2 * EACH, abs=1)
    asked = write_lines(chain.path("asked.txt"), [DECOMPOSED])
    done(
        *("job", "estimate", "--campaign", chain.campaign_path, "--tally", results / "tally.npz"),
        *("--items", asked, "--out", chain.path("asked")),
    )
    assert list(estimates(chain.path("asked"))) == [COMPOSED]


def test_a_value_that_clients_spell_in_two_ways_is_found_once(chain: Chain) -> None:
    assert found(chain.path("found")) == [NEW]
