"""Models of tables in many files, read by Dask, against the same table in memory."""

import json
import subprocess
import sys
from functools import reduce

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inside import (
    Part,
    Reading,
    TableError,
    UnknownColumn,
    _joined,
    _moments,
    fit_parts,
    read_parts,
)
from jacridge import JacobianKernelClassifier, JacobianKernelRidge
from jacridge.cli import main

pytest.importorskip("dask.array")
SIZES = (70, 1, 0, 129)


@pytest.fixture
def parts(tmp_path, rng):
    """A pattern for four parts of 200 rows in all, and the same rows in one frame."""
    X = rng.standard_normal((200, 3)) * [1, 10, 0.1] + [5, 0, -3]
    frame = pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(y=np.sin(X[:, 0]) + X[:, 1])
    for i, start in enumerate(np.cumsum((0, *SIZES[:-1]))):
        frame.slice(start, SIZES[i]).write_parquet(tmp_path / f"part-{i}.parquet")
    return str(tmp_path / "part-*.parquet"), frame


def fitted(pattern, target, est, *, standardize=True, **reading):
    """The model of all parts, and the numbers of complete and of all rows."""
    found = read_parts(pattern, target, Reading(**reading))
    return fit_parts(found, est, standardize=standardize), found.moments


def estimator():
    return JacobianKernelRidge(solver="nystrom", n_landmarks=60, random_state=0)


@given(st.lists(st.lists(st.floats(-1e3, 1e3), max_size=9), min_size=1, max_size=6))
def test_moments_of_parts_join_to_those_of_all(columns):
    parts = [Part(np.array(column)[:, None], None, len(column)) for column in columns]
    whole = reduce(_joined, map(_moments, parts))
    rows = np.concatenate(columns)
    assert whole.n == whole.n_all == len(rows)
    if len(rows):
        np.testing.assert_allclose(whole.mean, rows.mean(), atol=1e-9)
        np.testing.assert_allclose(whole.squares, len(rows) * rows.var(), rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("standardize", [True, False])
def test_parts_give_the_model_of_one_table_in_memory(parts, standardize):
    pattern, frame = parts
    saved, counts = fitted(pattern, "y", estimator(), standardize=standardize)

    X = frame.drop("y").to_numpy()
    centre, scale = (X.mean(axis=0), X.std(axis=0)) if standardize else (0, 1)
    alone = estimator().fit((X - centre) / scale, frame["y"].to_numpy())
    assert counts[:2] == (200, 200)
    assert saved.pipeline[-1].bandwidth_ == pytest.approx(alone.bandwidth_, rel=1e-9)
    # The landmarks are the same rows; sums over other blocks round otherwise.
    np.testing.assert_allclose(
        saved.pipeline.predict(frame), alone.predict((X - centre) / scale), rtol=1e-5
    )


def test_features_can_be_chosen_and_dropped(parts):
    saved, _ = fitted(parts[0], "y", estimator(), drop=["c"])
    assert (saved.numbers, saved.texts, saved.target) == (["a", "b"], [], "y")


def test_rows_with_missing_values_are_left_out_part_by_part(parts, tmp_path):
    hole = pl.DataFrame({"a": [1.0, None], "b": [1.0, 2.0], "c": [1.0, 1.0], "y": [1.0, 1.0]})
    hole.write_parquet(tmp_path / "part-9.parquet")
    _, counts = fitted(parts[0], "y", estimator())
    assert counts[:2] == (201, 202)
    with pytest.raises(TableError, match=r"part-9.parquet`: With --missing error no value may be"):
        fitted(parts[0], "y", estimator(), missing="error")


def test_parts_without_a_complete_row_are_refused(tmp_path):
    pl.DataFrame({"a": [1.0, None], "y": [None, 1.0]}).write_parquet(tmp_path / "part-1.parquet")
    with pytest.raises(TableError, match="must hold a row without missing values, got none"):
        fitted(str(tmp_path / "part-*.parquet"), "y", estimator())


def test_a_part_with_other_columns_is_named(parts, tmp_path):
    pl.DataFrame({"a": [1.0], "b": [1.0], "y": [1.0]}).write_parquet(tmp_path / "part-9.parquet")
    with pytest.raises(UnknownColumn, match=r"part-9.parquet` has no column `c`"):
        fitted(parts[0], "y", estimator())


def test_a_part_with_more_columns_is_named(parts, tmp_path):
    row = {"a": [1.0], "b": [1.0], "c": [1.0], "y": [1.0], "more": [1.0]}
    pl.DataFrame(row).write_parquet(tmp_path / "part-9.parquet")
    with pytest.raises(TableError, match=r"part-9.parquet` must have .*got `more` as well"):
        fitted(parts[0], "y", estimator())
    model, _ = fitted(parts[0], "y", estimator(), features=["a", "b"])
    assert model.numbers == ["a", "b"]


def test_a_part_with_texts_is_named(parts, tmp_path):
    row = {"a": ["red"], "b": [1.0], "c": [1.0], "y": [1.0]}
    pl.DataFrame(row).write_parquet(tmp_path / "part-9.parquet")
    with pytest.raises(TableError, match=r"In .*part-9.parquet`: .*`a` must hold numbers"):
        fitted(parts[0], "y", estimator())


def test_a_model_of_parts_reads_thousands_as_in_its_parts(tmp_path):
    """The comma in 2,345 alone may be decimal."""
    for i in (1, 2):
        rows = "".join(f'"{k:,}",{k % 11}\n' for k in range(2_000_000, 2_900_000, 9_000 * i))
        (tmp_path / f"part-{i}.csv").write_text(f"a,y\n{rows}")
    model, _ = fitted(str(tmp_path / "part-*.csv"), "y", estimator())
    assert model.thousands == ["a"]
    new = pl.DataFrame({"a": ["2,345", "12"]})
    assert model.columns_of(new, "new.csv")["a"].to_list() == [2345, 12]


def run(*args):
    with pytest.raises(SystemExit) as end:
        main([str(arg) for arg in args])
    return end.value.code or 0


def test_the_command_fits_parts_and_predicts_with_the_model(parts, tmp_path, capsys):
    model = tmp_path / "m.skops"
    args = ("-t", "y", "--engine", "dask", "-o", model, "--n-landmarks", "60", "--json")
    assert run("fit", parts[0], *args) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["n_samples"], result["solver"]) == (200, "nystrom")
    assert run("predict", model, parts[0], "--std", "--interval", "0.9") == 0
    assert len(capsys.readouterr().out.splitlines()) == 201


@pytest.fixture
def class_parts(parts, tmp_path):
    """The same parts with classes: texts, two values, three whole numbers, halves."""
    pattern, frame = parts
    index = np.digitize(frame["y"].to_numpy(), [-4, 6])
    frame = frame.with_columns(
        kind=np.array(["low", "middle", "top"])[index],
        passed=(index > 0).astype(int),
        right=index == 1,
        level=index + 1,
        half=index / 2,
    )
    for i, start in enumerate(np.cumsum((0, *SIZES[:-1]))):
        frame.slice(start, SIZES[i]).write_parquet(tmp_path / f"part-{i}.parquet")
    return pattern, frame


@pytest.mark.parametrize(
    ("target", "task", "classes"),
    [
        ("kind", "auto", ["low", "middle", "top"]),
        ("passed", "auto", [0, 1]),
        ("right", "auto", [0, 1]),
        ("level", "classification", [1, 2, 3]),
        ("half", "classification", ["0.0", "0.5", "1.0"]),
    ],
)
def test_classes_in_parts_have_the_model_of_one_table_in_memory(class_parts, target, task, classes):
    pattern, frame = class_parts
    make = {"solver": "nystrom", "n_landmarks": 60, "random_state": 0}
    found = read_parts(pattern, target, Reading(["a", "b", "c"], task=task))
    saved = fit_parts(found, JacobianKernelClassifier(**make))
    assert (saved.task, saved.classes) == ("classification", classes)
    X = frame.select("a", "b", "c").to_numpy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.array(classes)[np.unique(frame[target].to_numpy(), return_inverse=True)[1]]
    alone = JacobianKernelClassifier(**make).fit(X, y)
    # The landmarks are the same rows; sums over other blocks round otherwise.
    np.testing.assert_allclose(
        saved.pipeline.predict_proba(frame), alone.predict_proba(X), atol=1e-5
    )


def test_many_numbers_in_parts_are_no_classes_unless_asked_for(class_parts):
    assert read_parts(class_parts[0], "level", Reading(["a"], task="auto")).task == "regression"
    assert read_parts(class_parts[0], "passed", Reading(["a"])).task == "regression"


def test_the_command_fits_classes_in_parts_and_says_so(class_parts, tmp_path, capsys):
    model, options = tmp_path / "m.skops", ("--features", "a,b,c", "--n-landmarks", "60")
    args = ("-t", "kind", "--engine", "dask", "-o", model, *options, "--json")
    assert run("fit", class_parts[0], *args) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert (result["task"], result["classes"]) == ("classification", ["low", "middle", "top"])
    assert result["loo_accuracy"] > 0.8
    assert "`kind` holds text, so the model predicts its 3 classes: low, middle, top" in err
    assert run("predict", model, class_parts[0]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "prediction,probability low,probability middle,probability top"
    right = [line.split(",")[0] for line in lines[1:]] == class_parts[1]["kind"]
    assert right.mean() > 0.8


@pytest.mark.parametrize(
    ("kind", "task", "message"),
    [
        (
            [7.0, 7.0],
            "auto",
            "text in all parts or numbers in all parts, got text in .* and numbers",
        ),
        (["rare", "low"], "auto", "`kind` must have at least two rows of each class, got one of"),
        ([f"{i // 2}x" for i in range(200)], "auto", "at most 100 classes, got more. Use --task"),
    ],
)
def test_targets_of_parts_that_are_no_classes_are_told(class_parts, tmp_path, kind, task, message):
    """One more part is what is wrong."""
    n = len(kind)
    frame = pl.DataFrame({"a": [1.0] * n, "b": [1.0] * n, "c": [1.0] * n, "kind": kind})
    frame.write_parquet(tmp_path / "part-9.parquet")
    with pytest.raises(TableError, match=message):
        read_parts(class_parts[0], "kind", Reading(["a", "b", "c"], task=task))


def test_two_rows_of_a_class_may_be_in_one_part(class_parts, tmp_path):
    row = {"a": [1.0] * 2, "b": [1.0] * 2, "c": [1.0] * 2, "kind": ["rare"] * 2}
    pl.DataFrame(row).write_parquet(tmp_path / "part-9.parquet")
    found = read_parts(class_parts[0], "kind", Reading(["a", "b", "c"], task="auto"))
    assert found.classes.to_list() == ["low", "middle", "rare", "top"]


def test_missing_classes_in_parts_are_left_out(class_parts, tmp_path):
    frame = pl.DataFrame({"a": [1.0] * 3, "b": [1.0] * 3, "c": [1.0] * 3, "kind": ["", "NA", None]})
    frame.write_parquet(tmp_path / "part-9.parquet")
    found = read_parts(class_parts[0], "kind", Reading(["a", "b", "c"], task="auto"))
    assert found.moments[:2] == (200, 203)
    assert found.classes.to_list() == ["low", "middle", "top"]


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("--engine", "spark"), 2, "must be one of memory, dask, got 'spark'"),
        (("--scheduler", "tcp://127.0.0.1:1"), 2, "needs --engine dask"),
        (("--engine", "dask", "--solver", "exact"), 2, "must be auto or nystrom with"),
    ],
)
def test_wrong_use_of_engines_is_told(parts, tmp_path, capsys, args, code, message):
    assert run("fit", parts[0], "-t", "y", "-o", tmp_path / "m", *args) == code
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_named(parts, tmp_path):
    """In its own process, since a client that fails leaves threads behind."""
    command = [sys.executable, "-c", "from jacridge.cli import main; main()", "fit", parts[0]]
    args = ["-t", "y", "-o", str(tmp_path / "m"), "--engine", "dask"]
    address = ["--scheduler", "tcp://127.0.0.1:1"]
    done = subprocess.run([*command, *args, *address], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Error: No Dask scheduler answers at `tcp://127.0.0.1:1`." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_parts_are_fitted_by_a_worker_in_another_process(parts, tmp_path, capsys):
    distributed = pytest.importorskip("distributed")
    model = tmp_path / "m.skops"
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
    ) as cluster:
        args = ("-t", "y", "--engine", "dask", "--scheduler", cluster.scheduler_address)
        code = run("fit", parts[0], *args, "-o", model, "--n-landmarks", "60", "--json")
    assert code == 0
    assert json.loads(capsys.readouterr().out)["n_samples"] == 200


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_scheduler_without_workers_is_named(parts, tmp_path, capsys, size):
    distributed = pytest.importorskip("distributed")
    size("seconds for workers", 1)
    with distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=":0") as cluster:
        args = ("-t", "y", "--engine", "dask", "--scheduler", cluster.scheduler_address)
        assert run("fit", parts[0], *args, "-o", tmp_path / "m") == 1
    assert "must have workers, got none within 1 seconds" in capsys.readouterr().err
