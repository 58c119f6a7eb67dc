"""The cost model of docs/cost.md against fits by the Nystrom solver, for some n, m and workers."""

import sys
from time import perf_counter

import numpy as np
from _ratio import Rows
from bench_scale import ALPHA, SIGMA, M, data, landmarks, run

RUNS = (
    (100_000, 500, 1, "one_thread"),
    (100_000, 500, 2, "nystrom"),
    (100_000, 1000, 1, "one_thread"),
    (100_000, 1000, 2, "nystrom"),
    (400_000, 1000, 2, "nystrom"),
    (100_000, 2000, 1, "one_thread"),
    (100_000, 2000, 2, "nystrom"),
    (400_000, 1000, 2, "workers"),
)


def main():
    """One line a fit: the model's seconds, those measured, and their ratio."""
    rows = Rows()
    flops, entry = map(float, run("one_thread_rates", threads="1", of="bench_cost"))
    print(f"# {flops / 1e9:.3g} GFlop/s, {entry * 1e9:.3g} ns for an entry", file=sys.stderr)
    for n, m, workers, how in RUNS:
        options = (n, ALPHA, SIGMA, m) if how == "nystrom" else (n, m)
        seconds = run(how, *options, threads=None if how == "nystrom" else "1")[0]
        model = (n * m**2 / flops + n * m * entry) / workers + 6 * m**3 / flops
        rows.add(
            n=n, landmarks=m, workers=workers, by="processes" if how == "workers" else "threads",
            model=model, seconds=seconds, ratio=seconds / model,
        )  # fmt: skip


def one_thread_rates():
    """Flops in a second of K'K, counted as n m^2, and seconds for an entry of K: medians."""
    from jacridge._geometry.space import space_of
    from jacridge._solvers.landmarks import features

    X, *_ = data(10_000)
    phi = features(landmarks(X), SIGMA, space_of("gaussian", "euclidean"))
    K = phi.kernel(X[:1024])
    product, times = np.empty((M, M)), []
    for work in (lambda: np.matmul(K.T, K, out=product), lambda: phi.kernel(X[:1024], K)):
        taken = []
        for _ in range(20):
            start = perf_counter()
            work()
            taken.append(perf_counter() - start)
        times.append(np.median(taken))
    return len(K) * M**2 / times[0], times[1] / K.size


if __name__ == "__main__":
    main()
