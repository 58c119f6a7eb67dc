"""The public names, and the signatures that users write."""

import re

import jacridge


def test_the_version_has_three_numbers():
    assert re.fullmatch(r"\d+\.\d+\.\d+", jacridge.__version__)
