"""Processor's seconds and peak memory of each method against n, p and m, beside scikit-learn.

For the page "What it costs". Each fit runs in a process of its own, in one BLAS thread; seconds are
those of the processor, best of two. The row `gemm` has the seconds of 1e9 multiplications and
additions of a large matrix product, the limit of all of them.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import multiprocessing
from time import process_time

import numpy as np
from _ratio import Rows, peak_here

SIGMA, ALPHA = 3.0, 0.1


def data(n, p):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2 % p] + 0.3 * rng.standard_normal(n)


def ours(n, p, m, **options):
    from jacridge import JacobianKernelRidge

    options = {"n_landmarks": m or None, "landmarks": "uniform", "random_state": 0, **options}
    JacobianKernelRidge(SIGMA, ALPHA, **options).fit(*data(n, p))


def exact(n, p, m):
    ours(n, p, m, solver="exact")


def nystrom(n, p, m):
    ours(n, p, m, solver="nystrom")


def pcg(n, p, m):
    ours(n, p, m, solver="pcg")


def auto(n, p, m):
    from jacridge import AutoKernelRidge

    AutoKernelRidge(random_state=0).fit(*data(n, p))


def closed_form(n, p, m):
    from jacridge import select_bandwidth

    select_bandwidth(data(n, p)[0])


def kernel_ridge(n, p, m):
    from sklearn.kernel_ridge import KernelRidge

    KernelRidge(kernel="rbf", gamma=0.5 / SIGMA**2, alpha=ALPHA).fit(*data(n, p))


def gaussian_process(n, p, m):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    kernel = RBF(SIGMA) + WhiteKernel(ALPHA)
    GaussianProcessRegressor(kernel, normalize_y=True).fit(*data(n, p))


def nystroem_ridge(n, p, m):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    features = Nystroem(gamma=0.5 / SIGMA**2, n_components=m, random_state=0)
    make_pipeline(features, Ridge(alpha=ALPHA)).fit(*data(n, p))


RUNS = (
    (closed_form, [(n, 10, 0) for n in (1000, 10_000, 100_000, 1_000_000)]),
    (exact, [(n, 10, 0) for n in (500, 1000, 2000, 4000, 8000)]),
    (exact, [(2000, 100, 0)]),
    (kernel_ridge, [(n, 10, 0) for n in (500, 1000, 2000, 4000, 8000)]),
    (kernel_ridge, [(2000, 100, 0)]),
    (gaussian_process, [(n, 10, 0) for n in (500, 1000, 2000)]),
    (pcg, [(n, 10, 0) for n in (8000, 16_000)]),
    (auto, [(n, 10, 0) for n in (500, 1000, 2000, 4000, 8000)]),
    (auto, [(2000, 100, 0)]),
    (nystrom, [(n, 10, 500) for n in (10_000, 40_000, 160_000)]),
    (nystrom, [(40_000, 10, 1000), (40_000, 10, 2000), (40_000, 100, 500)]),
    (nystroem_ridge, [(n, 10, 500) for n in (10_000, 40_000, 160_000)]),
    (nystroem_ridge, [(40_000, 10, 1000), (40_000, 10, 2000), (40_000, 100, 500)]),
)


def measured(method, size):
    """Processor's seconds and peak bytes of a fit in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (method, size))


def _measured(method, size):
    """Best of two, without the time for imports and for making the data."""
    n, p, m = size
    method(60, p, min(m, 20))  # imports
    seconds, peaks = [], []
    for _ in range(2):
        start = process_time()
        data(n, p)
        middle = process_time()
        peaks.append(peak_here(method, *size))
        seconds.append(process_time() - middle - (middle - start))
    return min(seconds), min(peaks)


def gemm_seconds():
    """Seconds of 1e9 multiplications and additions."""
    A = np.random.default_rng(0).standard_normal((1000, 1000))
    times = []
    for _ in range(5):
        start = process_time()
        A @ A
        times.append(process_time() - start)
    return min(times)


def main():
    """One line a fit."""
    rows = Rows()
    rows.add(method="gemm", n=1000, p=1000, m=1000, seconds=gemm_seconds(), mb=24.0)
    for method, sizes in RUNS:
        for size in sizes:
            seconds, peak = measured(method, size)
            n, p, m = size
            rows.add(method=method.__name__, n=n, p=p, m=m, seconds=seconds, mb=peak / 1e6)


if __name__ == "__main__":
    main()
