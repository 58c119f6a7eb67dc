"""X to sigma by the Jacobian rule, against the full distance matrix and against two passes.

X to sigma takes a tenth of a millisecond, so that it is timed over CALLS calls, in turn with the
matrix. "first call" is one call right after the matrix, which has emptied the caches of X and code.

And what `import jacridge` takes beside `import sklearn.kernel_ridge`, each in processes of its own.
"""

import os
import subprocess
import sys

import numpy as np
from _ratio import Rows, seconds_of, standardised, table, tables

from jacridge import select_bandwidth
from jacridge._geometry.diameter import euclidean_diameter
from jacridge.theory import sigma_0

CALLS = 20


def by_full_matrix(X):
    """The formula after a distance matrix by matrix product."""
    n, p = X.shape
    squares = (X**2).sum(axis=1)
    D2 = squares[:, None] + squares - 2 * X @ X.T
    l_max = np.sqrt(D2.max())
    return sigma_0(n, l_max / ((n - 1) ** (1 / p) - 1), 1e-3)


def import_seconds(module, rounds=10):
    """Seconds of an import in a fresh process, the best of some, with compiled files."""
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-c", code]
    return min(float(subprocess.check_output(command, env=environment)) for _ in range(rounds))


def main():
    rows = Rows()
    for name in tables():
        X = np.ascontiguousarray(standardised(table(name, 10_000)[0])[:6500])
        first, calls, full = seconds_of(
            lambda X=X: select_bandwidth(X),
            lambda X=X: [select_bandwidth(X) for _ in range(CALLS)],
            lambda X=X: by_full_matrix(X),
        )
        ours = calls / CALLS
        assert np.isclose(select_bandwidth(X).sigma, by_full_matrix(X), rtol=1e-9)
        rows.add(what=f"X to sigma, {name} 6500", ours=ours, baseline=full, times=full / ours)
        what = f"X to sigma, {name} 6500, first call"
        rows.add(what=what, ours=first, baseline=full, times=full / first)
    X = np.random.default_rng(0).standard_normal((1_000_000, 10))
    ours, l_max, passes = seconds_of(
        lambda: select_bandwidth(X),
        lambda: euclidean_diameter(X),
        lambda: X.max(axis=0) - X.min(axis=0),
    )
    rows.add(what="X to sigma, normal 1e6 x 10", ours=ours, baseline=passes, times=passes / ours)
    ours, theirs = map(import_seconds, ("jacridge", "sklearn.kernel_ridge"))
    rows.add(what="import", ours=ours, baseline=theirs, times=theirs / ours)
    rows.add(what="l_max alone, normal 1e6 x 10", ours=l_max, baseline=passes, times=passes / l_max)


if __name__ == "__main__":
    main()
