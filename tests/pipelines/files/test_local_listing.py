"""What a listing of a local directory finds."""

from __future__ import annotations

from pathlib import Path

from pipelines.files import storage


def test_a_linked_folder_is_read_where_the_pattern_spells_its_name(tmp_path: Path) -> None:
    """An operator may keep a folder on another disk; a star follows no link, so that no circle is walked."""
    (tmp_path / "disk" / "a").mkdir(parents=True)
    (tmp_path / "disk" / "a" / "one.json").write_text("{}")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "late").symlink_to(tmp_path / "disk")
    (tmp_path / "disk" / "circle").symlink_to(tmp_path / "disk")
    out = str(tmp_path / "out")
    assert storage.list_tree(out, "late/*/*.json") == [(f"{out}/late/a/one.json", 2)]
    assert storage.list_tree(out, "*/*/*.json") == []
