"""The command, run in this process."""

import pytest

from jacridge.cli import main


@pytest.fixture
def run(capsys):
    """Function that runs the command and returns exit code, stdout and stderr."""

    def call(*args):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    return call
