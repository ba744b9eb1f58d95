"""The poisoning runs print what a result says: lazy forgers are flagged, and forgers that draw afresh are not."""

from __future__ import annotations

from experiments.poisoning import lines


def test_each_attack_is_printed_with_its_flags() -> None:
    printed = list(lines("oue", 4000, 1, 2))
    said = {text.split(":")[0].strip(): text for text in printed[4:]}
    assert printed[2].startswith("  honest: 0 of 1 batches flagged")
    assert "FLAG equal reports" in said["all repeat one report"]
    assert "FLAG supports" in said["all set every bit"]
    assert "FLAG" not in said["each draws afresh for one rare item"]
    assert "can raise 1,000 items at once" in printed[1]
