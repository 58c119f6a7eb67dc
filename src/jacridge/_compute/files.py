"""Files that are written completely or not at all."""

import errno
import os
import secrets
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


def check_place(path: str, *read: str | None) -> None:
    """Raise an error if no file can be written to `path`, before the work for it is done.

    The files that are `read` must not be overwritten.
    """
    if not path:
        raise FileNotFoundError(errno.ENOENT, "A file to write must have a name, got ''", path)
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            errno.ENOENT,
            "There is no such folder. Create it first, or choose another file to write",
            os.path.dirname(path) or folder,
        )
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "No permission to write this file", path)
    for other in read:
        if other and _is_file(path) and os.path.exists(other) and os.path.samefile(path, other):
            raise FileExistsError(
                errno.EEXIST,
                "This is an input file; choose another output file",
                path,
            )


@contextmanager
def replaced(path: str | Path) -> Iterator[Path]:
    """Context with a temporary file that replaces `path` on success and is removed on failure.

    Mode and owner of an existing file are kept. The target of a symbolic link is replaced, not the
    link. The content is copied to a device or a FIFO.
    """
    through = os.path.exists(path) and not _is_file(path)
    place = os.path.realpath(path)
    old = os.stat(place) if os.path.exists(place) and not through else None
    folder = tempfile.gettempdir() if through else os.path.dirname(place)
    beside = Path(folder, f".jacridge-{secrets.token_hex(8)}{Path(path).suffix}")
    # The mode is set from the start, so that there is never a readable copy of a private file.
    mode = 0o600 if through else stat.S_IMODE(old.st_mode) if old else 0o666
    with _stopped_by_sigterm():
        try:
            os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
            yield beside
            if through:
                with open(beside, "rb") as content, open(path, "wb") as target:
                    shutil.copyfileobj(content, target)
                return
            if old:
                with suppress(OSError):  # only root may give files away
                    os.chown(beside, old.st_uid, old.st_gid)
                os.chmod(beside, mode)
            os.replace(beside, place)
        finally:
            beside.unlink(missing_ok=True)


def _is_file(path: str | Path) -> bool:
    """Whether a path is a regular file, and not a name of an open one such as `/dev/stdout`."""
    name = os.path.abspath(path)
    return os.path.isfile(name) and not name.startswith(("/dev/", "/proc/"))


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """Context in which SIGTERM raises SystemExit, so that temporary files are removed."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
