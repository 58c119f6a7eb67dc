"""Parquet files that are fitted without being read whole, and what can be wrong with them."""

import pickle
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from inside import function
from jacridge import JacobianKernelRidge, select_bandwidth
from jacridge.parquet import ParquetFiles


@pytest.fixture
def parts(rng, tmp_path, size):
    """Files of unlike length, one of them empty, read 50 rows at a time; and all rows in one."""
    size("read rows", 50)
    frame = pl.DataFrame(rng.standard_normal((300, 3)), schema=["a", "b", "noise"])
    frame = frame.with_columns(y=pl.col("a").sin() + pl.col("b"), z=pl.col("b") ** 2)
    frame = frame.with_columns(weight=pl.Series(rng.integers(0, 3, 300)))
    for i, (start, stop) in enumerate([(0, 7), (7, 7), (7, 183), (183, 300)]):
        frame[start:stop].write_parquet(tmp_path / f"part-{i}.parquet")
    return str(tmp_path / "part-*.parquet"), frame


def ridge(**options):
    options = {"bandwidth": "jacobian", "n_landmarks": 40, "random_state": 0, **options}
    return JacobianKernelRidge(solver="nystrom", **options)


@pytest.mark.parametrize("bandwidth", ["jacobian", "scale", "jacobian_median"])
def test_files_give_the_model_of_their_rows(bandwidth, parts):
    source, frame = parts
    X, y = frame.select("a", "b").to_numpy(), frame["y"].to_numpy()
    files = ParquetFiles(source, ["a", "b"])
    ours = ridge(bandwidth=bandwidth).fit(files, "y")
    known = ridge(bandwidth=bandwidth).fit(X, y)
    assert ours.bandwidth_ == pytest.approx(known.bandwidth_, rel=1e-12)
    np.testing.assert_allclose(ours.predict(files), known.predict(X), rtol=1e-8)
    np.testing.assert_allclose(ours.loo_residuals_, known.loo_residuals_, rtol=1e-7, atol=1e-9)
    assert list(ours.feature_names_in_) == ["a", "b"]


def test_a_loaded_model_is_factored_once_before_files_are_read(parts, monkeypatch, size):
    """From Python 3.12 on each thread would factor it."""
    size("processors", 2)
    source, frame = parts
    X, y = frame.select("a", "b")[:40], frame["y"][:40]
    est = pickle.loads(pickle.dumps(JacobianKernelRidge(1.0, 0.1).fit(X, y)))
    threads, exact = [], function.RESTORED["exact"]

    def noted(*given):
        threads.append(threading.current_thread())
        return exact(*given)

    monkeypatch.setitem(function.RESTORED, "exact", noted)
    est.predict(ParquetFiles(source, ["a", "b"]), return_std=True)
    assert threads == [threading.current_thread()]


@pytest.mark.parametrize("bandwidth", ["jacobian", "scale", 1.0])
def test_a_fit_reads_each_row_twice(bandwidth, parts, monkeypatch, size):
    """Once for the geometry and the samples, of which there are several, once for the sums."""
    size("sample", 100)
    files = ParquetFiles(parts[0], ["a", "b"])
    rows_type = type(files.rows("y"))
    seen, read = [], rows_type._read_file

    def counted(self, *rows):
        seen.append(rows)
        return read(self, *rows)

    monkeypatch.setattr(rows_type, "_read_file", counted)
    ridge(bandwidth=bandwidth, n_landmarks=20).fit(files, "y")
    assert sorted(seen) == sorted(2 * list(dict.fromkeys(seen)))
    assert sum(stop - start for _, start, stop in seen) == 2 * 300


def test_rows_are_taken_in_the_order_asked_for(parts, rng):
    source, frame = parts
    rows, i = ParquetFiles(source, ["a", "b"]).rows("y", "weight"), rng.permutation(300)[:99]
    _, looked = rows.look(lambda X, y, w: None, i)
    for X, y, w in (rows.take(i), looked):
        np.testing.assert_array_equal(X, frame.select("a", "b").to_numpy()[i])
        np.testing.assert_array_equal(y[:, 0], frame["y"].to_numpy()[i])
        np.testing.assert_array_equal(w, frame["weight"].to_numpy()[i])


def test_several_targets_and_weights_are_columns(parts):
    source, frame = parts
    X, Y = frame.select("a", "b", "noise").to_numpy(), frame.select("y", "z").to_numpy()
    ours = ridge().fit(ParquetFiles(source), ["y", "z"], "weight")
    known = ridge().fit(X, Y, frame["weight"].to_numpy())
    mean, std = ours.predict(ParquetFiles(source), return_std=True)
    np.testing.assert_allclose(mean, known.predict(X), rtol=1e-8)
    np.testing.assert_allclose(std, known.predict(X, return_std=True)[1], rtol=1e-8)


def test_a_model_without_names_takes_the_columns_that_are_named(parts):
    source, frame = parts
    X = frame.select("a", "b").to_numpy()
    est = ridge().fit(X, frame["y"].to_numpy())
    np.testing.assert_allclose(est.predict(ParquetFiles(source, ["a", "b"])), est.predict(X), 1e-10)
    with pytest.raises(ValueError, match="`ParquetFiles` must name its features"):
        est.predict(ParquetFiles(source))
    with pytest.raises(ValueError, match=r"`X` must have 2 columns, as `X` has, got 1"):
        est.predict(ParquetFiles(source, ["a"]))


def test_a_part_with_other_columns_is_named(parts):
    source, _ = parts
    bad = source.replace("*", "9")
    pl.DataFrame({"a": [1.0], "y": [2.0]}).write_parquet(bad)
    with pytest.raises(ValueError, match=r"part-9.parquet` must have the column `b`, `noise`"):
        ridge().fit(ParquetFiles(source, ["a", "b", "noise"]), "y")


def test_a_part_with_more_columns_is_named(parts):
    source, frame = parts
    frame[:3].with_columns(more=pl.lit(1.0)).write_parquet(source.replace("*", "9"))
    with pytest.raises(ValueError, match=r"part-9.parquet` must have .*got `more` as well"):
        ridge().fit(ParquetFiles(source), "y")
    assert ridge().fit(ParquetFiles(source, ["a", "b"]), "y").n_features_in_ == 2


@pytest.mark.parametrize("name", ["y", "a"])
@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_a_part_with_missing_values_is_named(name, value, parts):
    source, frame = parts
    bad = source.replace("*", "9")
    frame[:3].with_columns(pl.Series(name, [1.0, value, 2.0])).write_parquet(bad)
    with pytest.raises(ValueError, match=rf"`{name}` in `.*part-9.parquet` must hold finite"):
        ridge().fit(ParquetFiles(source), "y")


def test_a_part_with_text_is_named(parts):
    source, frame = parts
    frame[:3].with_columns(a=pl.Series(["u", "v", "w"])).write_parquet(source.replace("*", "9"))
    with pytest.raises(ValueError, match=r"`a` in `.*part-9.parquet` must hold numbers"):
        ridge().fit(ParquetFiles(source), "y")


@pytest.mark.parametrize(("feature", "target"), [("y", "a"), ("a", "y"), ("b", "price")])
def test_targets_have_a_smaller_limit_whatever_their_names(feature, target, tmp_path, rng):
    path, x = tmp_path / "part.parquet", rng.standard_normal(60)
    frame = pl.DataFrame({feature: 1e120 * x, target: x})
    frame.write_parquet(path)
    est = ridge(bandwidth=1e120).fit(ParquetFiles(path), target)
    assert np.isfinite(est.predict(ParquetFiles(path, [feature]))).all()

    frame.with_columns(pl.col(target) * 1e120).write_parquet(path)
    with pytest.raises(ValueError, match=rf"`{target}` must have entries of at most 1e\+100"):
        est.fit(ParquetFiles(path), target)


def test_a_part_that_vanishes_between_the_passes_is_named(parts):
    source, _ = parts

    def bandwidth(problem):
        Path(source.replace("*", "2")).unlink()
        return 1.0

    est = ridge(bandwidth=bandwidth)
    with pytest.raises(OSError, match=r"part-2.parquet` could be read when the fit began"):
        est.fit(ParquetFiles(source), "y")
    assert not hasattr(est, "dual_coef_")


def test_a_part_that_grows_shorter_between_the_passes_is_named(parts):
    source, frame = parts

    def bandwidth(problem):
        frame[:5].write_parquet(source.replace("*", "2"))
        return 1.0

    with pytest.raises(OSError, match=r"part-2.parquet` has changed since the fit began"):
        ridge(bandwidth=bandwidth).fit(ParquetFiles(source), "y")


def test_no_file_a_broken_file_and_the_exact_solver_are_refused(parts, tmp_path):
    with pytest.raises(FileNotFoundError, match="No Parquet file matches"):
        ridge().fit(ParquetFiles(str(tmp_path / "none-*.parquet")), "y")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=r"broken.parquet` cannot be read as Parquet"):
        ridge().fit(ParquetFiles(str(tmp_path / "broken.parquet")), "y")
    with pytest.raises(ValueError, match="for Dask arrays and Parquet files"):
        JacobianKernelRidge(solver="exact").fit(ParquetFiles(parts[0]), "y")


def test_a_memory_map_gives_the_model_of_its_rows(rng, tmp_path):
    X, y = rng.standard_normal((500, 3)), rng.standard_normal(500)
    np.save(tmp_path / "X.npy", X)
    mapped = ridge().fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    np.testing.assert_array_equal(mapped.predict(X), ridge().fit(X, y).predict(X))


def test_files_without_rows_are_an_error(tmp_path):
    path = tmp_path / "empty.parquet"
    pl.DataFrame({"a": [], "y": []}, schema={"a": pl.Float64, "y": pl.Float64}).write_parquet(path)
    with pytest.raises(ValueError, match=r"empty.parquet: Parquet files must have rows"):
        ridge().fit(ParquetFiles(str(path)), "y")


def test_places_that_are_none_are_refused_also_in_files(rng, tmp_path):
    places = np.column_stack([rng.uniform(42, 51, 30), rng.uniform(-4, 8, 30)])
    est = JacobianKernelRidge(1e5, 0.1, metric="geodesic").fit(places, places[:, 0])
    path = tmp_path / "new.parquet"
    pl.DataFrame({"lat": [45.0, 500.0], "lon": [0.0, 0.0]}).write_parquet(path)
    with pytest.raises(ValueError, match="latitude"):
        est.predict(ParquetFiles(str(path), ["lat", "lon"]))


def test_files_are_asked_for_all_that_arrays_are(parts):
    source, frame = parts
    X, files = frame.select("a", "b").to_numpy(), ParquetFiles(source, ["a", "b"])
    est = ridge().fit(files, ["y", "z"])
    named = frame.select("a", "b")
    np.testing.assert_allclose(est.jacobian(files), est.jacobian(named), rtol=1e-10)
    np.testing.assert_allclose(est.predict_interval(files), est.predict_interval(named), rtol=1e-10)
    known = est.score(named, frame.select("y", "z").to_numpy())
    assert est.score(files, ["y", "z"]) == pytest.approx(known)
    weights = frame["weight"].to_numpy()
    known = est.score(named, frame.select("y", "z").to_numpy(), weights)
    assert est.score(files, ["y", "z"], "weight") == pytest.approx(known)
    assert est.score(files, ["y", "z"], weights) == pytest.approx(known)
    for y, column in ((None, None), (frame["y"].to_numpy(), "y")):
        ours, theirs = select_bandwidth(files, column), select_bandwidth(X, y)
        assert (ours.n, ours.sigma) == (theirs.n, pytest.approx(theirs.sigma))


def test_a_search_in_files_is_that_in_memory(parts):
    source, frame = parts
    X, y = frame.select("a", "b").to_numpy(), frame["y"].to_numpy()
    found = select_bandwidth(ParquetFiles(source, ["a", "b"]), "y", "loo", alpha="loo")
    known = select_bandwidth(X, y, "loo", alpha="loo")
    assert (found.sigma, found.alpha) == (pytest.approx(known.sigma), pytest.approx(known.alpha))


@pytest.mark.parametrize(
    ("y", "weight", "message"),
    [
        (np.zeros(300), None, r"`y` must be the name of a column .* array of shape \(300,\)"),
        ([], None, r"`y` must be the name of a column"),
        ("y", 3, r"`sample_weight` must be the name of a column .* got 3"),
        ("y", ["weight"], r"`sample_weight` must be the name of a column .* got \['weight'\]"),
    ],
)
def test_arrays_beside_files_are_refused(y, weight, message, parts):
    with pytest.raises(TypeError, match=message):
        ridge().fit(ParquetFiles(parts[0]), y, weight)
    with pytest.raises(ValueError, match="`y` must name the column"):
        ridge().fit(ParquetFiles(parts[0]), None)


def test_a_single_feature_may_be_given_as_a_word(parts):
    source, frame = parts
    est = ridge(bandwidth=1.0).fit(ParquetFiles(source, "noise"), "y")
    assert list(est.feature_names_in_) == ["noise"]
    known = ridge(bandwidth=1.0).fit(frame[["noise"]], frame["y"].to_numpy())
    found = known.predict(ParquetFiles(source, "noise"))
    np.testing.assert_allclose(found, known.predict(frame[["noise"]]), rtol=1e-7)
    unnamed = ridge(bandwidth=1.0).fit(frame[["noise"]].to_numpy(), frame["y"].to_numpy())
    np.testing.assert_allclose(unnamed.predict(ParquetFiles(source, "noise")), found, rtol=1e-7)
    with pytest.raises(ValueError, match="must have the column `other`, got none"):
        est.fit(ParquetFiles(source, "other"), "y")


def test_the_columns_of_each_file_are_read_once(parts, monkeypatch):
    looks, scan = [], pl.scan_parquet

    def noted(path, **options):
        looks.append(path)
        return scan(path, **options)

    monkeypatch.setattr(pl, "scan_parquet", noted)
    files = ParquetFiles(parts[0])
    files.rows("y", "weight")
    assert sorted(looks) == sorted(2 * files.parts())  # once more for their number


def test_a_path_a_name_with_brackets_and_a_list_are_files(parts, tmp_path):
    X = parts[1].select("a", "b")
    X.write_parquet(tmp_path / "data[1].parquet")
    est = ridge(bandwidth=1.0).fit(parts[1].select("a", "b"), parts[1]["y"].to_numpy())
    for source in (tmp_path / "data[1].parquet", [tmp_path / "data[1].parquet"]):
        np.testing.assert_allclose(est.predict(ParquetFiles(source)), est.predict(X), rtol=1e-10)
    with pytest.raises(FileNotFoundError, match="No Parquet file"):
        ridge().fit(ParquetFiles([]), "y")


@pytest.mark.parametrize("twice", ["a", "y"])
def test_a_column_is_used_once(twice, parts):
    with pytest.raises(
        ValueError, match=f"Features must be distinct columns .* got `{twice}` twice"
    ):
        ridge().fit(ParquetFiles(parts[0], ["a", twice]), "y")


def test_a_target_alone_is_refused(parts, tmp_path):
    parts[1].select("y").write_parquet(tmp_path / "alone.parquet")
    with pytest.raises(ValueError, match=r"Features must be distinct columns .* got none"):
        ridge().fit(ParquetFiles(tmp_path / "alone.parquet"), "y")
