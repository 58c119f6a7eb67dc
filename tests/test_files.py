"""A file is written whole or not at all."""

import os

import pytest

from jacridge._files import replaced


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    with replaced(tmp_path / "careful") as beside:
        beside.write_text("all of it")
    modes = {os.stat(tmp_path / name).st_mode for name in ("plain", "careful")}
    assert len(modes) == 1
    assert (tmp_path / "careful").read_text() == "all of it"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")

    def fail_halfway():
        with replaced(str(path)) as beside:
            beside.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail_halfway()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
