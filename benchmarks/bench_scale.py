"""Large n: Nystrom against scikit-learn, wide kernels, growth, protein, penalties, Dask, PCG.

Each fit runs in a process of its own, so that its peak memory is its own; baseline and ours
alternate. Without arguments all parts run, else those named: nystrom, wide, growth, protein,
penalty, dask, pcg. The parts landmarks, landmarks_auto and solvers, whose columns are others, run
only if they are named.
"""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from time import perf_counter

import numpy as np
from _ratio import Rows, standardised, table, tables, whole_table

SIGMA, ALPHA, M = 1.5, 1e-3, 1000


def data(n, p=9):
    """Normal features, a target with an interaction and noise; the last 10,000 rows test."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + 10_000, p))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(len(X))
    return X[:n], y[:n], X[n:], y[n:]


def landmarks(X, m=M):
    """The rows that scikit-learn's Nystroem takes with random_state=0."""
    return X[np.random.RandomState(0).permutation(len(X))[:m]]


def sklearn_nystrom(n, alpha=ALPHA, sigma=SIGMA):
    """Nystroem + Ridge, as they come."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    X, y, *test = data(n)
    features = Nystroem(gamma=0.5 / sigma**2, n_components=M, random_state=0)
    return timed(make_pipeline(features, Ridge(alpha=alpha)), X, y, test)


def nystrom(n, alpha=ALPHA, sigma=SIGMA, m=M, fit_intercept=True):
    X, y, *test = data(n)
    options = {"landmarks": landmarks(X, m), "fit_intercept": fit_intercept}
    return timed(ridge(sigma, alpha, solver="nystrom", **options), X, y, test)


def ridge(*args, **options):
    from jacridge import JacobianKernelRidge

    return JacobianKernelRidge(*args, **options)


def timed(model, X, y, test):
    """Seconds of a fit, bytes of memory that it took at its peak, and test R2."""
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # sets the high-water mark back
    start = perf_counter()
    model.fit(X, y)
    seconds, peak = perf_counter() - start, resident("VmHWM")
    return seconds, peak - before, model.score(*test)


def resident(name):
    """Bytes of this process in memory: now (VmRSS) or at most (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])


def exact(n):
    return solver_fit("exact", n)


def pcg(n):
    return solver_fit("pcg", n)


def solver_fit(solver, n):
    """Seconds, memory, and predictions at new rows, in a file for the comparison."""
    X, y, X_new, y_new = data(n, p=8)
    result = timed(model := ridge(SIGMA, 0.1, solver=solver), X, y, (X_new, y_new))
    np.save(f"/tmp/bench-scale-{solver}.npy", model.predict(X_new))
    return result


def protein(alpha):
    """With the bandwidth chosen; the penalty, too, if alpha is "auto"."""
    return timed(ridge("auto", alpha, random_state=0), *protein_rows())


def boosting(_):
    from sklearn.ensemble import HistGradientBoostingRegressor

    return timed(HistGradientBoostingRegressor(random_state=0), *protein_rows())


def protein_rows():
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    X, X_new, y, y_new = train_test_split(*whole_table("protein"), test_size=0.2, random_state=0)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, (scaler.transform(X_new), y_new)


def one_thread(n, m=M):
    """The fit in one process with one thread."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return nystrom(n, m=m)


def workers(n, m=M, profile=True):
    """The fit by two worker processes with one thread each, with Dask's settings as they are.

    Its sampling profiler takes a twentieth of each processor, where workers leave none free for it.
    """
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    X, y, *test = data(n)
    with (
        dask.config.set({"distributed.worker.profile.enabled": profile}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.run(import_module, "jacridge")  # as the process of the baseline has
        chunks = -(-n // 40)
        X_parts = da.from_array(X, chunks=(chunks, -1)).persist()
        y_parts = da.from_array(y, chunks=chunks).persist()
        wait([X_parts, y_parts])  # until the rows are where they stay
        model = ridge(SIGMA, ALPHA, solver="nystrom", landmarks=landmarks(X, m))
        start = perf_counter()
        model.fit(X_parts, y_parts)
        seconds = perf_counter() - start
    return seconds, 0, model.score(*test)


def run(name, *arguments, threads=None, of="bench_scale"):
    """A function of this file, or another one, in a process of its own."""
    code = f"import {of} as b; print(*b.{name}({', '.join(map(repr, arguments))}))"
    environment = dict(os.environ)
    if threads:
        environment |= {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return tuple(map(float, done.stdout.split()))


def add(rows, what, ours, baseline, theirs, unit):
    """One line: our value, the baseline's, and their ratio."""
    rows.add(what=what, unit=unit, ours=ours, baseline=baseline, theirs=theirs, ratio=ours / theirs)


def part_nystrom(rows, n=500_000):
    """Ours with the intercept of Ridge, which is free; by default it is the mean of y."""
    free = (n, ALPHA, SIGMA, M, "free")
    found = [(run("sklearn_nystrom", n), run("nystrom", *free)) for _ in range(2)]
    theirs, ours = map(min, zip(*found, strict=True))
    default = run("nystrom", n)
    add(rows, f"fit n={n} m={M}: time", ours[0], "Nystroem + Ridge", theirs[0], "s")
    add(rows, f"fit n={n} m={M}: peak memory", ours[1], "Nystroem + Ridge", theirs[1], "bytes")
    add(rows, f"fit n={n} m={M}: test R2", ours[2], "Nystroem + Ridge", theirs[2], "R2")
    what = f"fit n={n} m={M}: test R2, intercept at the mean"
    add(rows, what, default[2], "Nystroem + Ridge", theirs[2], "R2")


def part_wide(rows, n=300_000, alpha=1e-2, sigma=3.0):
    """A kernel so wide that its features are nearly dependent; the intercept of Ridge is free."""
    found = [
        (run("sklearn_nystrom", n, alpha, sigma), run("nystrom", n, alpha, sigma, M, "free"))
        for _ in range(2)
    ]
    theirs, ours = map(min, zip(*found, strict=True))
    what = f"fit n={n} m={M} bandwidth={sigma:g}"
    add(rows, f"{what}: time", ours[0], "Nystroem + Ridge", theirs[0], "s")
    add(rows, f"{what}: peak memory", ours[1], "Nystroem + Ridge", theirs[1], "bytes")
    add(rows, f"{what}: test R2", ours[2], "Nystroem + Ridge", theirs[2], "R2")


def part_growth(rows, sizes=(125_000, 250_000, 500_000, 1_000_000)):
    found = [[run("nystrom", n) for n in sizes] for _ in range(4)]  # sizes take turns
    best = [min(fits) for fits in zip(*found, strict=True)]
    for n, (seconds, memory, _) in zip(sizes, best, strict=True):
        per_row = seconds / n * sizes[0]
        add(rows, f"growth n={n}: time for each 125,000 rows", per_row, "n=125000", best[0][0], "s")
        add(rows, f"growth n={n}: peak memory", memory, "n=125000", best[0][1], "bytes")


def part_protein(rows):
    theirs = run("boosting", 0)
    for alpha in (ALPHA, "auto"):
        ours, what = run("protein", alpha), f"protein, bandwidth=auto, alpha={alpha}"
        add(rows, f"{what}: test R2", ours[2], "HistGradientBoosting", theirs[2], "R2")
        add(rows, f"{what}: time", ours[0], "60 s", 60.0, "s")


def part_penalty(rows, n=500_000):
    given = min(run("nystrom", n), run("nystrom", n))
    for alpha in ("gcv", "loo"):
        found = min(run("nystrom", n, alpha), run("nystrom", n, alpha))
        add(rows, f"alpha={alpha} of 17 values: time", found[0], "alpha given", given[0], "s")


def part_dask(rows, n=1_000_000):
    found = [
        (
            run("one_thread", n, threads="1"),
            run("workers", n, threads="1"),
            run("workers", n, M, False, threads="1"),
        )
        for _ in range(3)
    ]
    alone, both, quiet = map(min, zip(*found, strict=True))
    what = f"Dask, two workers, n={n}: time"
    add(rows, what, both[0], "one thread", alone[0], "s")
    add(rows, f"{what} without its profiler", quiet[0], "one thread", alone[0], "s")


def part_pcg(rows, n=20_000):
    theirs, ours = run("exact", n), run("pcg", n)
    f, g = (np.load(f"/tmp/bench-scale-{name}.npy") for name in ("exact", "pcg"))
    add(rows, f"pcg n={n}: time", ours[0], "exact", theirs[0], "s")
    add(rows, f"pcg n={n}: peak memory", ours[1], "exact", theirs[1], "bytes")
    add(rows, f"pcg n={n}: largest difference", np.abs(f - g).max(), "1e-5", 1e-5, "y")


def extra_landmarks(rows, m=500, seeds=3):
    """Test R2 and time of the ways to choose landmarks, at one bandwidth for each table."""
    for name in [*tables(), "made up"]:
        X, y, X_new, y_new = split(name)
        sigma = chosen(X, y)
        for kind in ("uniform", "kmeans", "rpcholesky"):
            fits = [
                timed(
                    ridge(
                        sigma, "gcv", solver="nystrom", n_landmarks=m, landmarks=kind,
                        random_state=seed,
                    ),
                    X, y, (X_new, y_new),
                )
                for seed in range(seeds)
            ]  # fmt: skip
            seconds, _, r2 = np.transpose(fits)
            rows.add(
                data=name, rows=len(X), sigma=sigma, landmarks=kind, r2=r2.mean(),
                least=r2.min(), most=r2.max(), seconds=seconds.min(),
            )  # fmt: skip


def extra_landmarks_auto(rows):
    """The same of whole fits with nothing else given: all rows, 3000 landmarks, all by `auto`."""
    for name in tables():
        X, y, X_new, y_new = split(name, 10**6)
        for kind in ("uniform", "kmeans", "rpcholesky"):
            model = ridge("auto", "auto", solver="nystrom", landmarks=kind, random_state=0)
            seconds, _, r2 = timed(model, X, y, (X_new, y_new))
            rows.add(data=name, rows=len(X), landmarks=kind, r2=r2, seconds=seconds)


def extra_solvers(rows):
    """Test R2 and time of AutoKernelRidge with each solver, by the number of training rows."""
    from jacridge import AutoKernelRidge

    sizes = (("california", 16_512), ("protein", 10_000), ("protein", 20_000), ("protein", 36_584))
    for name, n in sizes:
        X, y, X_new, y_new = split(name, 10**6)
        for solver in ("exact", "nystrom", "pcg"):
            model = AutoKernelRidge(solver=solver, random_state=0)
            seconds, memory, r2 = timed(model, X[:n], y[:n], (X_new, y_new))
            rows.add(
                data=name, rows=n, solver=solver, r2=r2, seconds=seconds, gigabytes=memory / 1e9
            )


def split(name, most=20_000):
    """A table, standardised, four fifths of it to train; of its rows at most so many."""
    if name == "made up":
        X, y, X_new, y_new = data(16_000)
        return X, y, X_new[:4000], y_new[:4000]
    X, y = table(name, most)
    X, n = standardised(X), len(X) * 4 // 5
    return X[:n], y[:n], X[n:], y[n:]


def chosen(X, y):
    from jacridge import select_bandwidth

    return select_bandwidth(X, y, "auto", alpha="auto", random_state=0).sigma


PARTS = {
    name.removeprefix("part_"): part
    for name, part in list(globals().items())
    if name.startswith("part_")
}


def main(names):
    rows = Rows()
    for name in names or PARTS:
        (PARTS.get(name) or globals()[f"extra_{name}"])(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
