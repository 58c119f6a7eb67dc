"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
