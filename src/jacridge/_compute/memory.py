"""Available memory, checked before large arrays are allocated."""

from __future__ import annotations

import os
from pathlib import Path


def check_memory(n_bytes: int, what: str, way_out: str) -> None:
    """Raise MemoryError if less than n_bytes are available."""
    available = available_memory()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{what} needs {readable_size(n_bytes)} of memory, but only {readable_size(available)} "
            f"is available. {way_out}"
        )


def available_memory() -> int | None:
    """Bytes that can be allocated now, within the limit of the control group; None if unknown."""
    known = [room for room in (_machine_memory(), _cgroup_memory()) if room is not None]
    return min(known, default=None)


def _machine_memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = dict(line.split(":", 1) for line in lines)
        return int(sizes["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _cgroup_memory() -> int | None:
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text().strip()
        return None if limit == "max" else max(int(limit) - int(used), 0)
    except (OSError, ValueError):
        return None


def readable_size(n_bytes: float) -> str:
    """Number of bytes in GB or MB, with three digits."""
    return f"{n_bytes / 1e9:.3g} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e6:.3g} MB"
