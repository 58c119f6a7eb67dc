"""Dask arrays give what NumPy arrays give, whatever the chunks, on threads and on a cluster."""

import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from inside import EUCLIDEAN, ArrayRows, Summing, Surveying, dask_source
from jacridge import RULES, JacobianKernelRidge, select_bandwidth
from known import SEARCHES

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

CHUNKS = [(-1, -1), (500, 2), ((700, 1, 1299), 3), (97, 1)]
# For the first 300 rows, where many rules are looked at.
FEW_CHUNKS = [((120, 1, 179), 3), (97, 1)]

OPTIONS = {"n_landmarks": 50, "random_state": 0}


def nystrom(*args, **options):
    return JacobianKernelRidge(*args, solver="nystrom", **{**OPTIONS, **options})


@pytest.fixture
def data(rng):
    """Rows of a table with two targets and weights: X (2000, 3), Y (2000, 2), w (2000,)."""
    X = rng.standard_normal((2000, 3)) * [1, 2, 0.5] + 4
    Y = np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 2] ** 2]) + 3
    return X, Y + 0.1 * rng.standard_normal(Y.shape), rng.uniform(0.2, 3, 2000)


def of_unknown_chunks(Z):
    """The same rows in a Dask array that knows neither their number nor its chunks."""
    rows = da.from_array(Z, chunks=(len(Z) // 3, *Z.shape[1:]))
    return rows[da.from_array(np.ones(len(Z), dtype=bool), chunks=len(Z) // 3)]


@pytest.mark.parametrize("chunks", CHUNKS)
def test_a_fit_is_that_of_numpy_whatever_the_chunks(chunks, data):
    X, Y, w = data
    known = nystrom().fit(X, Y, w)
    rows = da.from_array(X, chunks=chunks)
    ours = JacobianKernelRidge(**OPTIONS).fit(
        rows, da.from_array(Y, chunks=(333, 1)), da.from_array(w, chunks=450)
    )
    assert (ours.solver_, ours.n_features_in_) == ("nystrom", 3)
    np.testing.assert_allclose(ours.intercept_, known.intercept_, rtol=1e-10)
    np.testing.assert_allclose(ours.predict(rows).compute(), known.predict(X), rtol=1e-8)
    np.testing.assert_allclose(ours.loo_residuals_, known.loo_residuals_, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("alpha", [1e-3, 1e-9])
def test_a_system_that_magnifies_rounding_is_the_same_whatever_the_chunks(alpha, data):
    """Few landmarks would do for this bandwidth; predictions agree to 1e-6, as promised."""
    X, Y, w = data
    known = nystrom(30.0, alpha).fit(X, Y, w)
    for chunks in CHUNKS:
        ours = nystrom(30.0, alpha).fit(da.from_array(X, chunks=chunks), Y, w)
        np.testing.assert_allclose(ours.predict(X), known.predict(X), rtol=1e-6, atol=1e-6)


def test_a_number_is_the_weight_of_every_row(data):
    X, Y, _ = data
    known = nystrom(1.5, 0.1).fit(X, Y, np.full(2000, 3.0))
    ours = nystrom(1.5, 0.1).fit(da.from_array(X, chunks=(500, 3)), Y, 3)
    np.testing.assert_allclose(ours.predict(X), known.predict(X), rtol=1e-8)


def test_a_fit_to_unknown_chunks_is_that_of_numpy_and_leaves_the_array_as_it_was(data):
    X, Y, w = data
    rows = of_unknown_chunks(X)
    ours = nystrom().fit(rows, of_unknown_chunks(Y), of_unknown_chunks(w))
    np.testing.assert_allclose(ours.predict(X), nystrom().fit(X, Y, w).predict(X), rtol=1e-8)
    assert np.isnan(rows.shape[0])


@pytest.mark.parametrize("alpha", ["loo", "gcv", "mml", "auto", [0.01, 1.0]])
@pytest.mark.parametrize("bandwidth", ["jacobian", 1.5])
def test_penalties_are_chosen_as_for_numpy(alpha, bandwidth, data):
    X, Y, w = data
    known = nystrom(bandwidth, alpha).fit(X, Y, w)
    ours = nystrom(bandwidth, alpha).fit(da.from_array(X, chunks=(600, 3)), Y, w)
    # The criterion is flat at its minimum: rounding moves the penalty there by more than itself.
    np.testing.assert_allclose(ours.alpha_, known.alpha_, rtol=1e-4)
    # Predictions agree to 1e-6, as promised.
    np.testing.assert_allclose(ours.predict(X[:9]), known.predict(X[:9]), rtol=1e-6)


def test_bandwidth_and_penalty_are_chosen_together_as_for_numpy(data):
    X, Y = data[0][:450], data[1][:450]
    known, ours = (
        nystrom("auto", "auto").fit(rows, Y[:, 0])
        for rows in (X, da.from_array(X, chunks=(200, 3)))
    )
    # Predictions agree to 1e-6, as promised.
    assert ours.bandwidth_ == pytest.approx(known.bandwidth_, rel=1e-6)
    assert ours.alpha_ == pytest.approx(known.alpha_, rel=1e-6)
    np.testing.assert_allclose(ours.predict(X), known.predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_finds_what_it_finds_for_numpy_whatever_the_chunks(rule, data, size):
    """With a sample of the rows to look at; those below look at all of them, too."""
    size("sample", 200)
    X, Y, w = (part[:300] for part in data)
    known = nystrom(rule).fit(X, Y, w)
    for chunks in FEW_CHUNKS:
        ours = nystrom(rule).fit(da.from_array(X, chunks=chunks), Y, w)
        # Predictions agree to 1e-6, as promised.
        assert ours.bandwidth_ == pytest.approx(known.bandwidth_, rel=1e-6)
        np.testing.assert_allclose(ours.predict(X), known.predict(X), rtol=1e-6, atol=1e-6)


KINDS = {
    "places": lambda X: np.column_stack([45 + X[:, 0], X[:, 1]]),
    "far from the origin": lambda X: X + 1e4,
    "many equal": np.round,
    "many features": lambda X: np.hstack([X, np.sin(3 * X), X[:, ::-1] ** 2, np.cos(X), X**3]),
}


# Each rule with two kinds of rows, each kind with three rules.
RULES_OF_KINDS = [
    (rule, kind)
    for i, rule in enumerate(["jacobian", "jacobian_median", "gcv", "scale", "median", "auto"])
    for j, kind in enumerate(KINDS)
    if (i + j) % 2
]


@pytest.mark.filterwarnings("ignore:.* rows repeat an earlier row")
@pytest.mark.parametrize(("rule", "kind"), RULES_OF_KINDS)
def test_rows_of_all_kinds_give_what_they_give_for_numpy(rule, kind, data, size):
    """Equal rows, and rows of weight zero, are compared between chunks.

    Arrays in memory are rid of them first, so that other rows are drawn as landmarks.
    """
    size("sample", 150)
    X, Y = KINDS[kind](data[0][:300]), data[1][:300]
    w = np.floor(data[2][:300]) if kind == "many equal" else data[2][:300]
    metric = "geodesic" if kind == "places" else "euclidean"
    rows = da.from_array(X, chunks=-1) if kind == "many equal" else X
    known = nystrom(rule, metric=metric).fit(rows, Y, w)
    for chunks in [(200, -1), (97, 1)]:
        ours = nystrom(rule, metric=metric).fit(da.from_array(X, chunks=chunks), Y, w)
        # Predictions agree to 1e-6, as promised.
        np.testing.assert_allclose(ours.bandwidth_, known.bandwidth_, rtol=1e-6)
        np.testing.assert_allclose(ours.predict(X), known.predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rule", SEARCHES)
def test_every_search_finds_bandwidth_and_penalty_as_for_numpy_whatever_the_chunks(rule, data):
    X, Y, w = (part[:300] for part in data)
    known = nystrom(rule, "auto").fit(X, Y, w)
    for chunks in FEW_CHUNKS:
        ours = nystrom(rule, "auto").fit(da.from_array(X, chunks=chunks), Y, w)
        # A criterion is flat at its minimum: rounding moves that by more than itself.
        np.testing.assert_allclose(ours.bandwidth_, known.bandwidth_, rtol=1e-5)
        np.testing.assert_allclose(ours.alpha_, known.alpha_, rtol=1e-5)
        # Predictions agree to 1e-6, as promised.
        np.testing.assert_allclose(ours.predict(X), known.predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("sample", "in_chunks"),
    [(150, of_unknown_chunks), (10_000, lambda X: da.from_array(X, chunks=(97, 1)))],
    ids=["unknown chunks", "all columns apart"],
)
@pytest.mark.parametrize("rule", RULES)
def test_a_bandwidth_alone_is_that_of_numpy(rule, sample, in_chunks, data, size):
    size("sample", sample)
    X, Y = data[0][:250], data[1][:250]
    known = select_bandwidth(X, Y, rule, random_state=0)
    ours = select_bandwidth(in_chunks(X), da.from_array(Y), rule, random_state=0)
    for name in ("sigma", "n", "p", "l_max", "spacing"):
        # A minimum that is searched for follows the rounding of sums.
        np.testing.assert_allclose(getattr(ours, name), getattr(known, name), rtol=1e-6)


def test_a_bandwidth_and_penalty_alone_are_those_of_numpy(data, size):
    size("sample", 300)
    X, Y = data[0][:800], data[1][:800]
    known = select_bandwidth(X, Y, alpha="loo", random_state=0)
    ours = select_bandwidth(of_unknown_chunks(X), da.from_array(Y), alpha="loo", random_state=0)
    np.testing.assert_allclose(ours.sigma, known.sigma, rtol=1e-8)
    np.testing.assert_allclose(ours.alpha, known.alpha, rtol=1e-8)


def test_the_largest_distance_of_more_rows_than_are_sampled_is_exact(rng):
    """Of 30,000 rows 10,000 are looked at: the two that lie far out would be missed."""
    X = rng.uniform(size=(30_000, 2))
    X[[11_111, 22_222]] = [[-3, -3], [4, 4]]
    choice = select_bandwidth(da.from_array(X, chunks=(1000, 2)), random_state=1)
    assert choice.l_max == pytest.approx(np.sqrt(98), rel=1e-12)


@pytest.mark.parametrize("one", [True, False])
def test_predictions_are_lazy_and_those_of_numpy(one, data):
    X, Y = data[0][:400], data[1][:400]
    est = nystrom(1.5, 0.01).fit(X, Y[:, 0] if one else Y)
    rows = of_unknown_chunks(X)
    mean, std = est.predict(rows, return_std=True)
    for lazy, known in [
        (est.predict(rows), est.predict(X)),
        (mean, est.predict(X)),
        (std, est.predict(X, return_std=True)[1]),
        (est.jacobian(rows), est.jacobian(X)),
        *zip(est.predict_interval(rows, 0.8), est.predict_interval(X, 0.8), strict=True),
    ]:
        assert isinstance(lazy, da.Array)
        assert lazy.ndim == known.ndim
        np.testing.assert_allclose(lazy.compute(), known, rtol=1e-8, atol=1e-10)


def test_empty_blocks_are_passed_over(data):
    X, Y, _ = data
    rows = da.from_array(X, chunks=(500, 3))
    kept = X[:, 0] > 4
    kept[500:1000] = False
    some = rows[da.from_array(kept, chunks=500)]
    est = nystrom().fit(some, Y[kept])
    np.testing.assert_allclose(est.predict(X), nystrom().fit(X[kept], Y[kept]).predict(X), 1e-8)
    np.testing.assert_allclose(est.predict(some).compute(), est.predict(X[kept]), rtol=1e-8)


def test_rows_are_taken_in_the_order_asked_for(data, rng):
    X, Y, w = data
    rows = dask_source.dask_rows(da.from_array(X, chunks=(97, 3)), Y, w, EUCLIDEAN)
    i = rng.permutation(2000)
    for found, known in zip(rows.take(i[:70]), ArrayRows(X, Y, w).take(i[:70]), strict=True):
        np.testing.assert_array_equal(found, known)


def test_sums_leave_their_parts_as_they_were():
    """Dask may ask for a part again, after a worker is lost."""
    parts = [np.full(2, float(i)) for i in range(5)]
    np.testing.assert_array_equal(dask_source._added(parts), [10, 10])
    np.testing.assert_array_equal(parts, [[i, i] for i in range(5)])
    assert dask_source._added(parts[3:4]) is parts[3]


def test_a_fit_makes_each_block_twice(data, size):
    """Once for the geometry and the samples, once for the sums."""
    size("sample", 100)
    X, Y, _ = data
    seen = []

    def noted(block, block_info):
        seen.append(block_info[0]["chunk-location"])
        return block

    rows = da.from_array(X, chunks=(500, 3)).map_blocks(noted, dtype=float, meta=X[:0])
    with dask.config.set(scheduler="synchronous"):
        nystrom(1.0).fit(rows, Y)
    assert sorted(seen) == sorted([(i, 0) for i in range(4)] * 2)


def test_a_fit_of_single_precision_is_that_of_the_same_doubles(data):
    X, Y, _ = data
    X = X.astype(np.float32)
    ours = nystrom().fit(da.from_array(X, chunks=(600, 3)), Y)
    np.testing.assert_allclose(ours.predict(X), nystrom().fit(X, Y).predict(X), rtol=1e-8)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("name", ["X", "y"])
def test_a_bad_number_is_refused(name, value, data):
    given = dict(zip(("X", "y"), (np.array(Z) for Z in data[:2]), strict=True))
    given[name][1234, 1] = value
    rows = {key: da.from_array(Z, chunks=(500, -1)) for key, Z in given.items()}
    with pytest.raises(
        ValueError, match=f"`{name}` must have entries" if value == 1e200 else "1234"
    ):
        nystrom().fit(**rows)


@pytest.mark.parametrize("options", [{}, {"metric": "scaled"}, {"solver": "exact"}], ids=str)
def test_a_target_whose_squares_are_zero_is_refused_as_that_of_numpy_is(options, data):
    X, Y, _ = data
    y = 1e-170 * Y[:, 0]
    rows = X if options.get("solver") == "exact" else da.from_array(X, chunks=(500, 3))
    with pytest.raises(ValueError, match="`y` must be zero or have entries of at least 1e-150"):
        JacobianKernelRidge(1.0, 0.1, **options).fit(rows, y)
    y[1234] = 1.0
    assert np.isfinite(JacobianKernelRidge(1.0, 0.1, **options).fit(rows, y).intercept_)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("method", ["predict", "predict_interval", "outside_share", "jacobian"])
def test_rows_to_predict_for_are_refused_as_those_of_numpy_are(method, value, data):
    X, Y, _ = data
    call = getattr(nystrom(1.5).fit(X[:200], Y[:200]), method)
    bad = np.array(X[:100])
    bad[70, 1] = value
    with pytest.raises(ValueError, match="X") as known:
        call(bad)
    lazy = call(da.from_array(bad, chunks=(50, -1)))
    with pytest.raises(ValueError) as found:
        dask.compute(lazy)
    assert str(found.value).splitlines()[0] == str(known.value).splitlines()[0]


def test_places_to_predict_for_are_refused_as_those_of_numpy_are(rng):
    pytest.importorskip("pyproj")
    places = np.column_stack([rng.uniform(-60, 60, 40), rng.uniform(100, 180, 40)])
    est = JacobianKernelRidge(1e6, 0.1, metric="geodesic").fit(places, places[:, 0])
    swapped = da.from_array(places[:, ::-1], chunks=(20, 2))
    with pytest.raises(ValueError, match="latitudes from -90 to 90"):
        est.predict(swapped).compute()


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"solver": "exact"}, {}, '`solver` must be "auto" or "nystrom"'),
        ({"metric": "precomputed"}, {}, "`metric` must be computed from features"),
        ({}, {"y": None}, "`y` must be given"),
        ({}, {"y": np.ones(1999)}, "2000 rows"),
        ({}, {"sample_weight": np.zeros(2000)}, "must not be all zero"),
        ({"n_landmarks": 2000}, {"sample_weight": np.zeros(2000)}, "must not be all zero"),
        ({}, {"sample_weight": np.full(2000, -1.0)}, "`sample_weight` must be >= 0"),
        ({}, {"sample_weight": np.ones((2000, 1))}, "`sample_weight` must have one entry"),
        ({}, {"sample_weight": -1.0}, "`sample_weight` must be a finite number > 0, got -1.0"),
        ({"n_landmarks": 2001}, {}, "n_landmarks"),
    ],
)
def test_what_cannot_be_fitted_is_refused(options, change, message, data):
    X, Y, _ = data
    given = {"X": da.from_array(X, chunks=(600, 3)), "y": Y, **change}
    with pytest.raises(ValueError, match=message):
        JacobianKernelRidge(**{**OPTIONS, **options}).fit(**given)


def test_a_block_of_another_shape_than_its_chunk_is_refused(data):
    X, Y, _ = data
    blocks = [da.from_delayed(dask.delayed(X[:990]), (1000, 3), dtype=float) for _ in range(2)]
    with pytest.raises(ValueError, match=r"\(1000, 3\) for rows .* got \(990, 3\)"):
        nystrom().fit(da.concatenate(blocks), Y)
    more = da.from_delayed(dask.delayed(X[:1010]), (1000, 3), dtype=float)
    with pytest.raises(ValueError, match=r"`X` .* 0 to 999, got \(1010, 3\)"):
        nystrom().fit(da.concatenate([more, da.from_array(X[:1000])]), Y)


def test_texts_are_refused_before_anything_is_computed(data):
    with pytest.raises(TypeError, match="`X` must hold real numbers"):
        nystrom().fit(da.from_array(np.full((2000, 3), "a"), chunks=500), data[1])


def test_features_of_another_number_are_refused_by_a_lazy_prediction(data):
    est = nystrom().fit(*data[:2])
    with pytest.raises(ValueError, match="2 features"):
        est.predict(da.from_array(data[0][:, :2], chunks=500))


def test_a_data_frame_gives_its_names(data):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, Y, _ = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    rows = dd.from_pandas(frame, npartitions=3)
    ours = nystrom().fit(rows, Y)
    assert list(ours.feature_names_in_) == ["a", "b", "c"]
    known = nystrom().fit(frame, Y).predict(frame)
    np.testing.assert_allclose(ours.predict(rows).compute(), known, rtol=1e-8)


@pytest.fixture(scope="module")
def two_workers():
    """Two worker processes of one thread each, on this machine alone."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=":0",
        memory_limit="400MB",
    ) as local:
        yield local


@pytest.fixture
def cluster(two_workers):
    """The two workers, those in the place of killed ones too, and a client for one test."""
    distributed = pytest.importorskip("distributed")
    with distributed.Client(two_workers) as client:
        client.wait_for_workers(2)
        yield two_workers, client


def made(start, rows):
    """Rows that a worker makes by itself, the same each time."""
    rng = np.random.default_rng(start)
    return rng.standard_normal((rows, 3))


def wide(start):
    """Four columns, 25 times over: memory for many, and drawn in little time."""
    return np.tile(np.random.default_rng(start).random((20_000, 4)), 25)


def made_on_workers(count, rows):
    blocks = [dask.delayed(made)(i, rows) for i in range(count)]
    return da.concatenate([da.from_delayed(b, (rows, 3), dtype=float) for b in blocks])


@pytest.mark.slow
def test_a_worker_imports_what_work_needs_before_its_first_task():
    """Its task to unpack the work is known by name, from the module that imports all of it."""
    [task] = dask_source._shared(Surveying(EUCLIDEAN)).dask.values()
    module = dask_source.__name__
    assert task.func.__module__ == module
    code = (
        f"import pickle, sys, {module}; known = set(sys.modules); "
        f"pickle.loads({pickle.dumps((Summing, Surveying))}); "
        "print(set(sys.modules) - known)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


@pytest.mark.slow
def test_a_cluster_of_processes_gives_the_result_of_numpy(cluster, data):
    X, Y, w = data
    known = nystrom("jacobian", "loo").fit(X, Y, w)
    rows = da.from_array(X, chunks=(300, 2)).persist()
    workers = cluster[1].run(os.getpid)
    ours = nystrom("jacobian", "loo").fit(rows, Y, w)
    # What they import for their first tasks has cost no worker its life.
    assert cluster[1].run(os.getpid) == workers
    np.testing.assert_allclose(ours.alpha_, known.alpha_, rtol=1e-8)
    np.testing.assert_allclose(ours.predict(rows).compute(), known.predict(X), rtol=1e-8)
    np.testing.assert_allclose(ours.loo_residuals_, known.loo_residuals_, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_a_fit_outlives_a_worker_that_is_killed(cluster):
    """The blocks of the dead worker, and what it has summed, are made again by the other."""
    local, _ = cluster
    rows = made_on_workers(12, 2000)
    y = rows[:, 0] ** 2
    X = rows.compute()
    known = nystrom(1.0).fit(X, X[:, 0] ** 2)
    slow = rows.map_blocks(lambda block: (time.sleep(0.2), block)[1], dtype=float, meta=X[:0])
    victim = local.workers[0].pid
    timer = threading.Timer(1.0, os.kill, (victim, 9))
    timer.start()
    ours = nystrom(1.0).fit(slow, y)
    timer.join()
    assert all(worker.pid != victim for worker in local.workers.values())
    np.testing.assert_allclose(ours.predict(X[:99]), known.predict(X[:99]), rtol=1e-8)


@pytest.mark.slow
def test_data_larger_than_the_memory_of_all_workers_are_fitted(cluster):
    """0.88 GB of rows in 55 chunks, where two workers may take 400 MB each."""
    _, client = cluster
    blocks = [dask.delayed(wide)(i) for i in range(55)]
    rows = da.concatenate([da.from_delayed(b, (20_000, 100), dtype=float) for b in blocks])
    limits = client.run(lambda dask_worker: dask_worker.memory_manager.memory_limit)
    assert rows.nbytes > sum(limits.values())
    est = JacobianKernelRidge(20.0, n_landmarks=30, random_state=0).fit(rows, rows[:, 0])
    X = wide(0)[:1000]
    assert est.score(X, X[:, 0]) > 0.9


@pytest.mark.slow
def test_workers_that_die_of_a_block_too_large_for_them_are_named(cluster, monkeypatch):
    """A block of 0.8 GB, where a worker may take 400 MB: the nanny ends it."""
    local, _ = cluster
    monkeypatch.setattr(local.scheduler, "allowed_failures", 0)
    block = dask.delayed(lambda: np.ones((33_000_000, 3)))()
    rows = da.from_delayed(block, (33_000_000, 3), dtype=float)
    with pytest.raises(MemoryError, match=r"Use smaller chunks \(X.rechunk\)"):
        nystrom(1.0).fit(rows, da.ones(33_000_000, chunks=-1))


@pytest.mark.slow
def test_a_scheduler_that_is_gone_is_named():
    distributed = pytest.importorskip("distributed")
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        local = distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=":0")
        client = distributed.Client(local.scheduler_address)
        address = local.scheduler_address
        local.close()
        try:
            with pytest.raises(ConnectionError, match=address):
                nystrom().fit(made_on_workers(2, 500), np.zeros(1000))
        finally:
            client.close()


@pytest.mark.slow
def test_a_fresh_process_without_a_client_fits_and_keeps_dask_s_settings():
    """The first pass imports `distributed`; its defaults must outlive that pass."""
    code = (
        "import dask, dask.array as da; from jacridge import JacobianKernelRidge;"
        "X = da.random.default_rng(0).normal(size=(300, 2), chunks=100);"
        "est = JacobianKernelRidge('scale', n_landmarks=20).fit(X, X[:, 0]);"
        "print(est.predict(X).compute().shape);"
        "import distributed; dask.config.get('distributed.comm.timeouts.connect')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "(300,)\n"), run.stderr


@pytest.mark.parametrize("name", ["X", "y"])
def test_rows_without_columns_are_refused(name, data):
    given = {"X": da.from_array(data[0]), "y": data[1]}
    given[name] = given[name][:, :0]
    with pytest.raises(ValueError, match=f"`{name}` must have at least one column"):
        nystrom(1.0).fit(**given)
