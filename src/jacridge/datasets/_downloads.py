"""Files of data sets: the folder of one's own, the cache, and checked downloads into it."""

import errno
import os
from pathlib import Path

from .._checks import require


def own_folder() -> Path | None:
    """The folder that JACRIDGE_DATA names, if any."""
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
    """The folder that downloads are kept in."""
    named = os.environ.get("JACRIDGE_CACHE")
    return Path(named) if named else Path(require("pooch", extra="data").os_cache("jacridge"))


def download(name: str, file: str, url: str, sha256: str) -> Path:
    """The checked file in the cache; on any failure an OSError, and no file."""
    pooch = require("pooch", extra="data")
    mirror = os.environ.get("JACRIDGE_MIRROR")
    url = f"{mirror.rstrip('/')}/{file}" if mirror else url
    cache = cache_folder()
    pooch.get_logger().setLevel("WARNING")
    try:
        # pooch writes beside the goal, compares the checksum, then renames.
        found = pooch.retrieve(
            url,
            known_hash=f"sha256:{sha256}",
            fname=file,
            path=cache,
            downloader=pooch.HTTPDownloader(timeout=30),
        )
    except (OSError, ValueError) as problem:
        what, way = _what_to_do(url, cache, problem, f"{file} or {name}.csv")
        raise OSError(f"`{name}` could not be downloaded: {what}. {way}.") from problem
    return Path(found)


def _what_to_do(url: str, cache: Path, problem: Exception, names: str) -> tuple[str, str]:
    """Describe a failed download, and a way out."""
    if isinstance(problem, ValueError):
        what = f"the file at {url} has another sha256 than the one on record"
        way = "Try again; if it stays so, the file there has changed: please report it"
    elif getattr(problem, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        what = f"there is no room in {cache} ({problem})"
        way = "Make room, or set JACRIDGE_CACHE to another folder"
    elif isinstance(problem, PermissionError):
        what = f"{cache} cannot be written ({problem})"
        way = "Set JACRIDGE_CACHE to a folder that can"
    else:
        what = f"{url} did not answer with a whole file ({problem})"
        way = (
            "Check the connection; or bring the file from elsewhere, as "
            f"{names}, into a folder and set JACRIDGE_DATA to that folder"
        )
    return what, way
