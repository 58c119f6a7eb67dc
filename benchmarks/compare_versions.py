"""Two versions of the package side by side: the seconds of the same jobs, in turn.

    python compare_versions.py BEFORE/src AFTER/src [JOB ...]

Each version runs in a process of its own, which does a job when it is told to and then waits, so
that only one of them works at any time. A job that a version does not have is left out.
"""

import subprocess
import sys
from time import perf_counter, sleep

import numpy as np
from _ratio import Rows

ROUNDS = 5
# Seconds until the BLAS threads of the other version have stopped waiting for work.
SETTLE = 0.3


def made(n, p=8, seed=0):
    """Normal features, and a smooth target with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)


def fit_of(n, *choice, p=8, **options):
    """A fit to n rows, as a job: the data are made before."""
    from jacridge import JacobianKernelRidge

    X, y = made(n, p)
    return lambda: JacobianKernelRidge(*choice, random_state=0, **options).fit(X, y)


def asked_of(n, method, **options):
    """A method of a model that was fitted to n rows before, for other rows."""
    (X_new, _), fit = made(n, seed=1), fit_of(n, 1.5, 0.1)
    model = fit()
    return lambda: getattr(model, method)(X_new, **options)


def first_interval(n_new=3000):
    """The first intervals after a fit: models are fitted before, one for each time."""
    (X_new, _), fit = made(n_new, seed=1), fit_of(3000, 1.5, 0.1)
    models = iter([fit() for _ in range(ROUNDS + 1)])
    return lambda: next(models).predict_interval(X_new)


def selected(n):
    """The closed-form bandwidth."""
    from jacridge import select_bandwidth

    X, _ = made(n)
    return lambda: [select_bandwidth(X) for _ in range(50)]


def dask_fit():
    """Nystrom on chunks of a Dask array, in threads."""
    import dask.array as da

    from jacridge import JacobianKernelRidge

    X, y = (da.from_array(a, chunks=(50_000, *a.shape[1:])) for a in made(200_000))
    return lambda: JacobianKernelRidge(2.0, 1e-2, n_landmarks=300, random_state=0).fit(X, y)


def everything_chosen():
    """The whole fit with kernel and metric chosen."""
    from jacridge import AutoKernelRidge

    X, y = made(2000)
    return lambda: AutoKernelRidge(random_state=0).fit(X, y)


def loo_residuals():
    """Leave-one-out residuals after a fit."""
    fit = fit_of(3000, 1.5, 0.1)
    models = iter([fit() for _ in range(ROUNDS + 1)])
    return lambda: next(models).loo_residuals_


JOBS = {
    "exact fit 6500": lambda: fit_of(6500, 1.5, 1e-3),
    "closed form, fit 2000": lambda: fit_of(2000),
    "auto, auto 2000": lambda: fit_of(2000, "auto", "auto"),
    "loo 2000": lambda: fit_of(2000, "loo", 1e-3),
    "loo, loo 2000": lambda: fit_of(2000, "loo", "loo"),
    "gcv 1500": lambda: fit_of(1500, "gcv", 1e-3),
    "mml 1500": lambda: fit_of(1500, "mml", 1e-3),
    "nystrom 100,000, narrow": lambda: fit_of(
        100_000, 1.5, 1e-2, p=9, solver="nystrom", n_landmarks=1000
    ),
    "nystrom 100,000, wide": lambda: fit_of(
        100_000, 3.0, 1e-2, p=9, solver="nystrom", n_landmarks=1000
    ),
    "pcg 10,000": lambda: fit_of(10_000, 2.0, 1e-2, solver="pcg"),
    "dask 200,000": dask_fit,
    "select_bandwidth 6500, 50 times": lambda: selected(6500),
    "predict 6000": lambda: asked_of(6000, "predict"),
    "predict with deviations 3000": lambda: asked_of(3000, "predict", return_std=True),
    "jacobian 3000": lambda: asked_of(3000, "jacobian"),
    "predict_interval 3000, first": first_interval,
    "predict_interval 3000, first, 100 new rows": lambda: first_interval(100),
    "predict_interval 3000, again": lambda: asked_of(3000, "predict_interval"),
    "loo_residuals_ 3000": loo_residuals,
    "AutoKernelRidge 2000": everything_chosen,
}


def serve():
    """Make the jobs whose names come in, and do the last one at each empty line."""
    job = None
    for line in sys.stdin:
        name = line.strip()
        try:
            if name:
                job = JOBS[name]()
                job()  # warms up
                print("ready", flush=True)
            else:
                sleep(SETTLE)
                start = perf_counter()
                job()
                print(perf_counter() - start, flush=True)
        except (AttributeError, ImportError, TypeError) as error:
            print(f"missing: {error}", flush=True)


class Version:
    """A process that does jobs with the package of one source tree."""

    def __init__(self, source):
        code = "import compare_versions; compare_versions.serve()"
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r}); {code}"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, **pipes)

    def say(self, line):
        """The answer of the process to one line."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


def main():
    before, after = (Version(source) for source in sys.argv[1:3])
    rows = Rows()
    for name in sys.argv[3:] or JOBS:
        if [before.say(name), after.say(name)] != ["ready", "ready"]:
            print(f"{name}: not in both versions", file=sys.stderr)
            continue
        seconds = [[float(each.say("")) for each in (before, after)] for _ in range(ROUNDS)]
        a, b = np.min(seconds, axis=0)
        rows.add(what=name, before=a, after=b, ratio=b / a)
    for each in (before, after):
        each.process.stdin.close()
        each.process.wait()


if __name__ == "__main__":
    main()
