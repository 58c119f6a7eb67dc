"""Files: written whole or not at all; what parts the cells of a text table."""

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SEPARATORS = ",;\t|"


def separator_of(line: str) -> str:
    """The character that parts the cells of a table's first line; those in quotes do not count."""
    bare = re.sub('"[^"]*"', "", line)
    return max(SEPARATORS, key=bare.count)


def check_place(path: str, *read: str | None) -> None:
    """Refuse a path that no file can be written to, before the work for it is done.

    Nor may it be one of the files that are read: they would be lost.
    """
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "There is no such folder", folder)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
    for other in read:
        if (
            other
            and os.path.exists(path)
            and os.path.exists(other)
            and os.path.samefile(path, other)
        ):
            raise FileExistsError(
                errno.EEXIST,
                "It is read here and would be lost; give another name to write to",
                path,
            )


@contextmanager
def replaced(path: str | Path) -> Iterator[Path]:
    """A file beside `path` that takes its place when all is written, and else goes away."""
    folder = os.path.dirname(path) or "."
    handle, beside = tempfile.mkstemp(dir=folder, prefix=".jacridge-", suffix=Path(path).suffix)
    os.close(handle)
    try:
        yield Path(beside)
        os.chmod(beside, 0o666 & ~_umask())  # mkstemp lets only the owner read
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """The mode bits that new files must not have."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
