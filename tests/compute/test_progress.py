"""Who listens hears how far a fit is, whatever its solver and wherever its rows are."""

import numpy as np
import pytest

from inside import listening, printer, tell
from jacridge import JacobianKernelRidge


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((300, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(300)


def heard(fit):
    """What is told while `fit` runs."""
    lines = []
    with listening(lambda *line: lines.append(line)):
        fit()
    return lines


def estimator(**options):
    return JacobianKernelRidge(1.0, 0.1, n_landmarks=30, random_state=0, **options)


def test_nobody_hears_what_is_told_to_no_one():
    lines = heard(lambda: tell(1, 2, "rows"))
    tell(2, 2, "rows")
    assert lines == [(1, 2, "rows")]


def test_none_leaves_it_to_who_listens_already():
    def fit():
        with listening(None):
            tell(1, 2, "rows")

    assert heard(fit) == [(1, 2, "rows")]


@pytest.mark.parametrize("alpha", [0.1, "loo"])
def test_a_nystrom_fit_tells_of_each_pass_over_the_rows(alpha, rows, size):
    size("task rows", 100)
    size("processors", 3)
    lines = heard(lambda: estimator(solver="nystrom").set_params(alpha=alpha).fit(*rows))
    sums = [line for line in lines if line[2] == "rows, their sums"]
    assert [done for done, _, _ in sums] == [100, 200, 300]
    assert any(what == "rows, their leave-one-out errors" for *_, what in lines) == (alpha == "loo")


def test_conjugate_gradients_tell_of_the_digits_found(rows):
    lines = heard(lambda: estimator(solver="pcg").fit(*rows))
    digits = [line for line in lines if "conjugate gradients" in line[2]]
    assert digits[-1][:2] == (70, 70)
    assert digits[0][0] < 70


def test_parquet_files_are_told_of_by_rows(rows, tmp_path, size):
    pl = pytest.importorskip("polars")
    from jacridge import parquet

    size("read rows", 120)
    frame = pl.DataFrame(rows[0], schema=["a", "b"]).with_columns(y=rows[1])
    frame.write_parquet(tmp_path / "1.parquet")
    files = parquet.ParquetFiles(str(tmp_path / "1.parquet"))
    est = estimator()
    lines = heard(lambda: est.fit(files, "y"))
    assert [line[0] for line in lines if line[2] == "rows, their sums"] == [120, 240, 300]
    assert [line[0] for line in heard(lambda: est.predict(files))] == [120, 240, 300]


def test_blocks_of_dask_are_told_of_where_no_cluster_does_the_work(rows, monkeypatch):
    da = pytest.importorskip("dask.array")
    X = da.from_array(rows[0], chunks=(100, 2))
    lines = heard(lambda: estimator().fit(X, rows[1]))
    assert [line[:2] for line in lines if line[2] == "blocks of rows, their sums"] == [
        (1, 3),
        (2, 3),
        (3, 3),
    ]
    assert (300, 300, "rows, their sums") in lines


@pytest.mark.parametrize("verbose", [0, 1])
def test_verbose_prints_to_stderr(verbose, rows, capsys):
    estimator(solver="nystrom", verbose=verbose).fit(*rows)
    out, err = capsys.readouterr()
    assert out == ""
    assert ("[jacridge] rows, their sums: 300 of 300" in err) == bool(verbose)


def test_a_printer_prints_ends_and_one_line_in_each_second(capsys):
    show = printer(every=60.0)
    for done in range(1, 6):
        show(done, 5, "rows")
    assert capsys.readouterr().err == "[jacridge] rows: 5 of 5\n"


@pytest.mark.slow
def test_the_command_shows_a_bar_on_a_terminal(rows, tmp_path, monkeypatch, size, capsys):
    pl = pytest.importorskip("polars")
    from jacridge.cli import main

    pl.DataFrame(rows[0], schema=["a", "b"]).with_columns(y=rows[1]).write_csv(tmp_path / "t.csv")
    size("landmarks", 100)
    monkeypatch.setenv("FORCE_COLOR", "1")  # for which rich takes any stream for a terminal
    args = ["fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m", "--solver", "nystrom"]
    with pytest.raises(SystemExit):
        main([str(arg) for arg in args])
    assert "300/300" in capsys.readouterr().err
