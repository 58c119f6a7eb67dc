"""Folders of data sets, and checked downloads."""

import errno
import os
from pathlib import Path

from .._checks import require


def own_folder() -> Path | None:
    """Folder that JACRIDGE_DATA names, if any."""
    named = os.environ.get("JACRIDGE_DATA")
    if not named:
        return None
    if not Path(named).is_dir():
        raise FileNotFoundError(
            f"`JACRIDGE_DATA` must name a folder that exists, got {named!r}. "
            "Unset it to use downloads."
        )
    return Path(named)


def cache_folder() -> Path:
    """Folder where downloads are kept."""
    named = os.environ.get("JACRIDGE_CACHE")
    return Path(named) if named else Path(require("pooch", extra="data").os_cache("jacridge"))


def download(name: str, file: str, url: str, sha256: str) -> Path:
    """Download a file to the cache and check it; a failure leaves no file."""
    pooch = require("pooch", extra="data")
    mirror = os.environ.get("JACRIDGE_MIRROR")
    url = f"{mirror.rstrip('/')}/{file}" if mirror else url
    cache = cache_folder()
    pooch.get_logger().setLevel("WARNING")
    try:
        # pooch writes a temporary file, compares the checksum, then renames.
        found = pooch.retrieve(
            url,
            known_hash=f"sha256:{sha256}",
            fname=file,
            path=cache,
            downloader=pooch.HTTPDownloader(timeout=30),
        )
    except (OSError, ValueError) as problem:
        what = _diagnosed(problem, url, cache, f"{file} or {name}.csv")
        raise OSError(f"`{name}` could not be downloaded: {what}") from problem
    return Path(found)


def _diagnosed(problem: Exception, url: str, cache: Path, names: str) -> str:
    """Why a download failed, and what to do."""
    if isinstance(problem, ValueError):
        return (
            f"the checksum (sha256) of the file at {url} is wrong. Try again; if that "
            "does not help, the file has changed: please report it."
        )
    if getattr(problem, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"no space is left in {cache} ({problem}). Free some space, or set JACRIDGE_CACHE to "
            "another folder."
        )
    if isinstance(problem, PermissionError):
        return f"{cache} cannot be written to ({problem}). Set JACRIDGE_CACHE to another folder."
    return (
        f"{url} did not return a complete file ({problem}). Check the connection, or copy the "
        f"file, as {names}, to a folder and set JACRIDGE_DATA to that folder."
    )
