"""The exact solver, intervals and criteria against scikit-learn, NumPy and the dgemm rate.

Without arguments all parts run, else those named. The part `busy` compares times while another
process keeps one processor busy with times while none does: run it on an idle machine.
"""

import argparse
import subprocess
import sys
from functools import partial
from time import perf_counter

import numpy as np
from _ratio import Rows, peak_bytes, seconds_of
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge

from jacridge import JacobianKernelRidge, select_bandwidth
from jacridge._geometry.space import Pairs, space_of
from jacridge._rules.criteria import LOO, MML

SPACE = space_of("gaussian", "euclidean")

SIGMA, ALPHA = 1.5, 1e-3


def data(n, p=8):
    """Normal features, a smooth target with noise, centred."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)
    return X, y - y.mean()


def fit_ours(n):
    return JacobianKernelRidge(SIGMA, ALPHA, solver="exact").fit(*data(n))


def fit_sklearn(n):
    return KernelRidge(alpha=ALPHA, kernel="rbf", gamma=0.5 / SIGMA**2).fit(*data(n))


def exact_fit(rows, n=6500):
    """Time, memory and predictions beside KernelRidge."""
    X, y = data(n)
    ours = JacobianKernelRidge(SIGMA, ALPHA, solver="exact")
    theirs = KernelRidge(alpha=ALPHA, kernel="rbf", gamma=0.5 / SIGMA**2)
    a, b = seconds_of(lambda: ours.fit(X, y), lambda: theirs.fit(X, y), rounds=4)
    gap = np.abs(ours.predict(X[:1000]) - theirs.predict(X[:1000])).max()
    rows.add(what=f"exact fit {n}: seconds", ours=a, baseline=b, ratio=a / b)
    rows.add(what=f"exact fit {n}: largest gap of predictions", ours=gap, baseline=1e-8, ratio=0.0)
    a, b = peak_bytes(fit_ours, n), peak_bytes(fit_sklearn, n)
    rows.add(what=f"exact fit {n}: peak bytes", ours=float(a), baseline=float(b), ratio=a / b)


def large_fit(rows, n=20_000):
    """A process of its own, beside n^3 / 3 operations at the dgemm rate of the same run."""
    rate = gemm_rate()
    X, _ = data(n)
    start = perf_counter()
    pairs = Pairs(X, SPACE)
    pairs.kernel(SIGMA)
    make = perf_counter() - start
    del pairs
    code = (
        f"import bench_solvers as b, time; X, y = b.data({n});"
        "from jacridge import JacobianKernelRidge;"
        "import _ratio as r, pathlib; before = r._status('VmRSS');"
        "pathlib.Path('/proc/self/clear_refs').write_text('5'); t = time.perf_counter();"
        "JacobianKernelRidge(b.SIGMA, b.ALPHA, solver='exact').fit(X, y);"
        "print(time.perf_counter() - t, r._status('VmHWM') - before)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    rate = max(rate, gemm_rate())
    seconds, peak = map(float, run.stdout.split()) if run.returncode == 0 else (np.inf, np.inf)
    ideal = n**3 / 3 / rate + make
    rows.add(what=f"exact fit {n}: exit code", ours=run.returncode, baseline=0, ratio=0.0)
    rows.add(what=f"exact fit {n}: seconds", ours=seconds, baseline=ideal, ratio=seconds / ideal)
    rows.add(
        what=f"exact fit {n}: peak / n^2", ours=peak, baseline=8.0 * n * n, ratio=peak / 8 / n**2
    )


def gemm_rate(n=4000):
    """Operations a second of a large matrix product."""
    A = np.random.default_rng(0).standard_normal((n, n))
    return 2 * n**3 / seconds_of(lambda: A @ A, rounds=3)[0]


def loo_curve(rows, n=6500):
    """Leave-one-out at ten bandwidths beside numpy.linalg.inv for each."""
    X, y = data(n)
    l_max = select_bandwidth(X).l_max
    sigmas = np.geomspace(1e-3, l_max, 10)
    values = {}

    def ours():
        pairs, w = Pairs(X, SPACE), np.ones(n)
        values["ours"] = [
            LOO.at(pairs, sigma, ALPHA, y[:, None], w, centred=False) for sigma in sigmas
        ]

    def by_inverse():
        gaps, values["inv"] = SPACE.distance.gaps(X, X), []
        for sigma in sigmas:
            B = np.linalg.inv(SPACE.kernel.of(gaps.copy(), sigma) + ALPHA * np.eye(n))
            values["inv"].append(np.mean((B @ y / np.diagonal(B)) ** 2))

    a, b = seconds_of(ours, by_inverse, rounds=1)
    gap = np.max(np.abs(np.array(values["ours"]) / np.array(values["inv"]) - 1))
    rows.add(what=f"loo at 10 bandwidths {n}: seconds", ours=a, baseline=b, ratio=b / a)
    rows.add(what=f"loo at 10 bandwidths {n}: largest gap", ours=gap, baseline=1e-6, ratio=0.0)


def mml_search(rows, n=3000):
    """The search beside GaussianProcessRegressor from one start, signal variance free in both."""
    X, y = data(n)
    found = {}

    def ours():
        found["ours"] = select_bandwidth(X, y, "mml", alpha=ALPHA).sigma

    def theirs():
        # alpha / signal variance is lambda; the variance is fixed at what ours profiles out.
        gp = GaussianProcessRegressor(RBF(1.0), alpha=ALPHA, normalize_y=False)
        found["theirs"] = gp.fit(X, y / found["scale"]).kernel_.length_scale

    pairs = Pairs(X, SPACE)
    select = select_bandwidth(X, y, "mml", alpha=ALPHA).sigma
    A = SPACE.block(X, X, select) + ALPHA * np.eye(n)
    found["scale"] = np.sqrt(y @ np.linalg.solve(A, y) / n)
    a, b = seconds_of(ours, theirs, rounds=1)
    objective = [
        MML.at(pairs, found[side], ALPHA, y[:, None], np.ones(n)) for side in ("ours", "theirs")
    ]
    rows.add(what=f"mml search {n}: seconds", ours=a, baseline=b, ratio=b / a)
    rows.add(
        what=f"mml search {n}: objective", ours=objective[0], baseline=objective[1],
        ratio=objective[0] - objective[1],
    )  # fmt: skip


def intervals(rows, n=6000):
    """The first intervals after a fit, for as many new rows, beside predictions for them."""
    rng = np.random.default_rng(0)
    X, X_new = rng.uniform(size=(2, n, 5))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)
    fits = iter([JacobianKernelRidge(0.5, 0.1).fit(X, y) for _ in range(3)])
    est = JacobianKernelRidge(0.5, 0.1).fit(X, y)
    a, b = seconds_of(
        lambda: next(fits).predict_interval(X_new), lambda: est.predict(X_new), rounds=3
    )
    rows.add(what=f"predict_interval {n}: seconds", ours=a, baseline=b, ratio=a / b)


def while_busy(rows, n=1500):
    """Fits while another process keeps one processor busy, beside the same without it."""
    X, y = data(n)
    cases = {
        "fit": (SIGMA, ALPHA),
        "auto, auto": ("auto", "auto"),
        "loo": ("loo", ALPHA),
        "loo, loo": ("loo", "loo"),
    }
    for name, (bandwidth, alpha) in cases.items():
        est = JacobianKernelRidge(bandwidth, alpha, random_state=0)
        fit = partial(est.fit, X, y)
        (quiet,) = seconds_of(fit, rounds=3)
        other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            (busy,) = seconds_of(fit, rounds=3)
        finally:
            other.kill()
            other.wait()
        rows.add(
            what=f"{name} {n}, another process busy: seconds",
            ours=busy, baseline=quiet, ratio=busy / quiet,
        )  # fmt: skip


PARTS = {
    "fit": exact_fit,
    "large": large_fit,
    "loo": loo_curve,
    "mml": mml_search,
    "intervals": intervals,
    "busy": while_busy,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    rows = Rows()
    for part in parser.parse_args().parts:
        PARTS[part](rows)


if __name__ == "__main__":
    main()
