"""Time and memory of effects() beside the fit, exact and Nystrom, 10 features.

Seconds are those of the processor, in one thread, as on a machine that is shared the time on the
clock says little.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

from time import process_time

import numpy as np
from _ratio import Rows, peak_bytes

from jacridge import JacobianKernelRidge

P = 10
SOLVERS = {"exact": {}, "nystrom": {"solver": "nystrom", "n_landmarks": 1000, "random_state": 0}}
RUNS = (("exact", 1000), ("exact", 2000), ("exact", 5000), ("nystrom", 20_000))


def data(n):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, P))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)


def fitted(solver, n):
    return JacobianKernelRidge(3.0, 0.1, **SOLVERS[solver]).fit(*data(n))


def both(solver, n):
    fitted(solver, n).effects()


def seconds(solver, n):
    """Processor's seconds of the fit and of its effects."""
    start = process_time()
    est = fitted(solver, n)
    middle = process_time()
    est.effects()
    return middle - start, process_time() - middle


def main():
    """One line a case: seconds and peak memory of the fit, and of fit and effects."""
    rows = Rows()
    for solver, n in RUNS:
        fit, effects = (
            min(times) for times in zip(*(seconds(solver, n) for _ in range(3)), strict=True)
        )
        memory = peak_bytes(fitted, solver, n), peak_bytes(both, solver, n)
        square = 8 * (n if solver == "exact" else 1000) ** 2
        rows.add(
            solver=solver, n=n, p=P, fit_seconds=float(fit), effects_seconds=float(effects),
            ratio=float(effects / fit),
            fit_mb=memory[0] / 1e6, both_mb=memory[1] / 1e6,
            more_arrays=(memory[1] - memory[0]) / square,
        )  # fmt: skip


if __name__ == "__main__":
    main()
