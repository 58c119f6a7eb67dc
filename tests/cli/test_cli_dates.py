"""Dates become year, month, day of the week and hour; new rows are read as training was."""

import calendar
import datetime
import re
from html import unescape

import numpy as np
import polars as pl
import pytest
import skops.io

from inside import (
    CYCLES,
    DAYS,
    PARTS,
    TIMES,
    Reading,
    TableError,
    format_of,
    load_model,
    read_rows,
    save_model,
)
from jacridge.cli import main

START = datetime.datetime(2021, 11, 28, 5, 40)
MOMENTS = [START + datetime.timedelta(hours=271 * i) for i in range(40)]


def write(folder, cells, name="t.csv"):
    path = folder / name
    path.write_text("when;y\n" + "".join(f"{cell};{i % 9}\n" for i, cell in enumerate(cells)))
    return str(path)


@pytest.mark.parametrize("day", DAYS)
@pytest.mark.parametrize("time", TIMES)
def test_every_format_gives_the_same_days(tmp_path, day, time):
    rows = read_rows(write(tmp_path, [m.strftime(day + time) for m in MOMENTS]), ["y"])
    assert rows.dates["when"].format == day + time
    year = rows.X["when (year)"]
    assert year.floor().to_list() == [m.year for m in MOMENTS]
    angle = np.arctan2(rows.X["when (month sine)"], rows.X["when (month cosine)"])
    lengths = [calendar.monthrange(m.year, m.month)[1] for m in MOMENTS]
    months = [m.month - 1 + (m.day - 1) / days for m, days in zip(MOMENTS, lengths, strict=True)]
    np.testing.assert_allclose(angle / (2 * np.pi) * 12 % 12, months, atol=1e-9)
    angle = np.arctan2(rows.X["when (weekday sine)"], rows.X["when (weekday cosine)"])
    assert (np.round(angle / (2 * np.pi) * 7) % 7).tolist() == [m.weekday() for m in MOMENTS]


@pytest.mark.parametrize("form", ["%Y%m%d", "%Y%m%d%H%M", "%Y%m%d%H%M%S"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_dates_written_as_one_number_are_dates(tmp_path, form, suffix):
    path = write(tmp_path, [m.strftime(form) for m in MOMENTS])
    if suffix == "parquet":
        pl.read_csv(path, separator=";").write_parquet(path := str(tmp_path / "t.parquet"))
    rows = read_rows(path, ["y"])
    assert rows.dates["when"].format == form
    assert rows.X["when (year)"].floor().to_list() == [m.year for m in MOMENTS]
    assert ("when (hour sine)" in rows.X.columns) == ("%H" in form)


@pytest.mark.parametrize("cells", [[20_201_301 + i for i in range(40)], [2.01e13] * 40])
def test_large_numbers_that_are_no_dates_stay_numbers(tmp_path, cells):
    assert read_rows(write(tmp_path, cells), ["y"]).X.columns == ["when"]


@pytest.mark.parametrize(
    "form", ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.125Z", "%Y-%m-%dT%H:%M:%S+02:00"]
)
def test_zones_and_fractions_are_left_aside(tmp_path, form):
    rows = read_rows(write(tmp_path, [m.strftime(form) for m in MOMENTS]), ["y"])
    expected = [np.sin(2 * np.pi * (m.hour + m.minute / 60) / 24) for m in MOMENTS]
    np.testing.assert_allclose(rows.X["when (hour sine)"], expected, atol=1e-12)


@pytest.mark.parametrize("form", ["%Y%m%d", "%Y%m%dT%H%M%S", "%b %d, %Y", "%d %b %Y %H:%M"])
def test_compact_dates_and_short_months_are_read(tmp_path, form, capsys):
    path = tmp_path / "t.csv"
    path.write_text("when;y\n" + "".join(f"{m:{form}};{m.day}\n" for m in MOMENTS))
    rows = read_rows(str(path), ["y"])
    assert rows.X["when (year)"].floor().to_list() == [m.year for m in MOMENTS]
    assert run("fit", path, "-t", "y", "--rule", "1.0", "-o", tmp_path / "m.skops") == 0
    assert "`when` holds dates and becomes year, month, weekday" in capsys.readouterr().err
    assert run("predict", tmp_path / "m.skops", path) == 0
    assert "unlike" not in capsys.readouterr().err


def test_whole_numbers_of_a_parquet_file_may_be_compact_dates(tmp_path):
    days = [int(f"{m:%Y%m%d}") for m in MOMENTS]
    pl.DataFrame({"when": days, "y": range(40)}).write_parquet(tmp_path / "t.parquet")
    assert "when (year)" in read_rows(str(tmp_path / "t.parquet"), ["y"]).numbers
    pl.DataFrame({"when": [*days[1:], 20211131], "y": range(40)}).write_parquet(
        tmp_path / "t.parquet"
    )
    assert read_rows(str(tmp_path / "t.parquet"), ["y"]).numbers == ["when"]


def test_the_short_name_of_a_month_may_be_the_long_one():
    cells = [f"{day:02d} May 2020" for day in range(1, 29)]
    assert format_of(pl.Series("when", cells)) == "%d %B %Y"


@pytest.mark.parametrize("zone", [None, "Europe/Stockholm"])
def test_columns_with_a_type_for_dates_are_dates(tmp_path, zone):
    when = pl.Series(MOMENTS).dt.replace_time_zone(zone)
    pl.DataFrame({"when": when, "y": range(40)}).write_parquet(tmp_path / "t.parquet")
    rows = read_rows(str(tmp_path / "t.parquet"), ["y"])
    expected = [np.cos(2 * np.pi * (m.hour + m.minute / 60) / 24) for m in MOMENTS]
    np.testing.assert_allclose(rows.X["when (hour cosine)"], expected, atol=1e-12)


def test_parts_that_are_equal_in_all_rows_are_no_features(tmp_path):
    days = [f"2020-03-{i:02d}" for i in range(1, 29)]
    rows = read_rows(write(tmp_path, days), ["y"])
    assert rows.dates["when"].parts == ["year", "weekday sine", "weekday cosine"]


@pytest.mark.parametrize("step", [0, -1])
def test_first_and_last_days_of_months_are_months(tmp_path, step):
    """Their days of the week say nothing."""
    firsts = [datetime.date(2020 + i // 12, 1 + i % 12, 1) for i in range(30)]
    days = [day + datetime.timedelta(days=step) for day in firsts]
    rows = read_rows(write(tmp_path, [f"{day}" for day in days]), ["y"])
    assert rows.dates["when"].parts == ["year", "month sine", "month cosine"]


@pytest.mark.parametrize("form", ["%Y-%m", "%Y/%m"])
def test_a_year_and_a_month_are_a_date_without_a_weekday(tmp_path, form, capsys):
    days = [datetime.datetime(2012 + i // 12, i % 12 + 1, 1) for i in range(30)]
    path = write(tmp_path, [day.strftime(form) for day in days])
    rows = read_rows(path, ["y"])
    assert rows.dates["when"].parts == ["year", "month sine", "month cosine"]
    expected = [np.sin(2 * np.pi * (day.month - 1) / 12) for day in days]
    np.testing.assert_allclose(rows.X["when (month sine)"], expected, atol=1e-12)
    assert run("select", path, "-t", "y") == 0
    assert (
        "`when` holds years and months and becomes year, month, all but" in capsys.readouterr().err
    )


@pytest.mark.parametrize(("months", "parts"), [(11, ["year"]), (12, ["year", "month"])])
def test_dates_within_less_than_a_year_have_no_month(tmp_path, months, parts):
    """A trend and a season could not be told apart."""
    days = [f"{2020 + i // 12}-{i % 12 + 1:02d}" for i in range(months)]
    rows = read_rows(write(tmp_path, days), ["y"])
    assert list(dict.fromkeys(part.split()[0] for part in rows.dates["when"].parts)) == parts


def test_a_season_is_predicted_without_jumps_at_the_ends_of_months(tmp_path, rng):
    """With the month as a whole number, predictions were a staircase."""
    days = [datetime.date(2021, 1, 1) + datetime.timedelta(days=i) for i in range(730)]
    truth = 5 * np.sin(2 * np.pi * np.arange(730) / 365.25)
    file, out = tmp_path / "t.csv", tmp_path / "p.csv"
    pl.DataFrame({"when": days, "y": truth + rng.normal(size=730)}).write_csv(file)
    fixed = ("--rule", "3.0", "--alpha", "1", "--no-standardize")
    assert run("fit", file, "-t", "y", *fixed, "-o", tmp_path / "m.skops") == 0
    assert run("predict", tmp_path / "m.skops", file, "-o", out) == 0
    predicted = pl.read_csv(out)["prediction"].to_numpy()
    steps, is_first = np.abs(np.diff(predicted)), np.array([day.day == 1 for day in days[1:]])
    assert steps[is_first].max() <= steps[~is_first].max()
    assert np.sqrt(np.mean((predicted - truth) ** 2)) < 0.3


def test_a_fit_to_rows_in_order_of_time_says_what_its_score_is_worth(tmp_path, capsys):
    path = write(tmp_path, [m.strftime("%Y-%m-%d %H:%M") for m in MOMENTS])
    assert run("fit", path, "-t", "y", "--rule", "scale", "-o", tmp_path / "m.skops") == 0
    assert (
        "Note: The rows are in order of `when`. Leave-one-out predicts rows from those before and "
        "after them, which flatters models that have to predict the future"
    ) in capsys.readouterr().err


def test_a_date_that_is_missing_is_named_once(tmp_path, capsys):
    path = write(tmp_path, [m.strftime("%Y-%m-%d %H:%M") for m in MOMENTS])
    assert run("fit", path, "-t", "y", "--rule", "scale", "-o", tmp_path / "m.skops") == 0
    new = write(tmp_path, ["2022-01-31 05:40", ""], "new.csv")
    assert run("predict", tmp_path / "m.skops", new) == 0
    err = capsys.readouterr().err
    assert "1 of 2 rows has missing values and no prediction: 1 lacks `when`. To" in err


def test_effects_of_a_date_are_per_year_and_leave_waves_out(tmp_path, capsys):
    """Within groups, too, whose labels may be numbers."""
    path = write(tmp_path, [m.strftime("%Y-%m-%d") for m in MOMENTS])
    for by in ((), ("--by", "when (weekday sine)")):
        assert run("effects", path, "-t", "y", "--rule", "scale", "--alpha", "1", *by) == 0
        out = capsys.readouterr().out
        assert re.search(r"when \(year\) +per year", out)
        assert "sine" not in out
    given = ("--variables", "when (month sine)")
    assert run("effects", path, "-t", "y", "--rule", "scale", "--alpha", "1", *given) == 0
    assert "when (month sine)" in capsys.readouterr().out


def test_every_cycle_has_a_sine_and_a_cosine():
    assert set(PARTS) == {"year"} | {f"{n} {w}" for n in CYCLES for w in ("sine", "cosine")}


def test_days_that_may_be_months_are_refused(tmp_path):
    path = write(tmp_path, ["01/02/2020", "03/04/2020", "05/06/2020"])
    message = "`when` must hold unambiguous dates, got values such as '01/02/2020'"
    with pytest.raises(TableError, match=message):
        read_rows(path, ["y"])


@pytest.mark.parametrize(
    "cells",
    [
        ["1.2.3", "1.2.4"],
        ["2020-13-01"],
        ["2012-13"],
        ["12:30"],
        ["20201301"],
        ["99.99.99"],
        ["3 days 10"],
        ["a", "b"],
        [],
    ],
)
def test_other_texts_are_no_dates(cells):
    assert format_of(pl.Series("c", cells, dtype=pl.String)) is None


def test_a_dropped_column_of_dates_is_not_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,when,y\n1,01/02/2020,2\n2,01/02/2020,3\n")
    assert read_rows(str(path), ["y"], Reading(drop=["when"])).X.columns == ["x"]


def test_a_date_is_no_target(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,when\n1,2020-01-02\n2,2020-01-03\n")
    with pytest.raises(TableError, match="target `when` must hold numbers, got dates such as"):
        read_rows(str(path), ["when"])


def run(*args):
    with pytest.raises(SystemExit) as end:
        main([str(arg) for arg in args])
    return end.value.code or 0


@pytest.fixture
def model(tmp_path, capsys):
    path = write(tmp_path, [m.strftime("%d/%m/%Y %H:%M") for m in MOMENTS])
    assert run("fit", path, "-t", "y", "-o", tmp_path / "m.skops") == 0
    assert (
        "Note: `when` holds dates and becomes year, month, weekday, hour, all but the year as sine "
        "and cosine. Leave it out with --drop 'when'.\n"
    ) in capsys.readouterr().err
    return tmp_path / "m.skops"


def test_new_dates_are_read_as_those_of_training(model, tmp_path, capsys):
    """01/12/2021 may be the 12th of January, were the format not kept."""
    new = write(tmp_path, ["01/12/2021 05:40"], "new.csv")
    assert run("predict", model, new) == 0
    predicted = float(capsys.readouterr().out.splitlines()[1])
    typed = pl.DataFrame({"when": [datetime.datetime(2021, 12, 1, 5, 40)]})
    typed.write_parquet(tmp_path / "new.parquet")
    assert run("predict", model, tmp_path / "new.parquet") == 0
    assert float(capsys.readouterr().out.splitlines()[1]) == predicted


def test_new_rows_without_dates_in_the_column_are_refused(model, tmp_path, capsys):
    assert run("predict", model, write(tmp_path, ["13/01/2021 05:40", "soon"], "new.csv")) == 1
    err = capsys.readouterr().err
    assert "`when` must hold dates of the form %d/%m/%Y %H:%M, got 'soon' in row 2" in err


def test_a_model_of_whole_months_predicts_the_days_of_a_month_alike(tmp_path, capsys):
    """As files were written before; saved again, they say so."""
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=11 * i) for i in range(80)]
    path = write(tmp_path, days)
    assert run("fit", path, "-t", "y", "--rule", "2.0", "-o", tmp_path / "m.skops") == 0
    content = {"format": "jacridge model 2", **vars(load_model(str(tmp_path / "m.skops")))}
    date = content["dates"]["when"]
    content["dates"] = {"when": {"format": date.format, "parts": date.parts}}
    skops.io.dump(content, tmp_path / "old.skops")
    old = load_model(str(tmp_path / "old.skops"))
    save_model(str(tmp_path / "again.skops"), old)
    new = pl.DataFrame({"when": ["2021-03-01", "2021-03-31", "2021-04-01"]})
    for saved in (old, load_model(str(tmp_path / "again.skops"))):
        X = saved.columns_of(new, "new.csv")
        sine = np.sin(np.array([2, 2, 3]) * np.pi / 6)
        np.testing.assert_allclose(X["when (month sine)"], sine, atol=1e-12)
        assert X["when (weekday sine)"].n_unique() == 3


def test_a_model_keeps_how_its_dates_are_read(model):
    saved = load_model(str(model))
    assert saved.dates["when"].format == "%d/%m/%Y %H:%M"
    assert len(saved.numbers) == len(PARTS)


def test_new_dates_with_years_of_two_digits_are_refused_where_training_had_four(
    model, tmp_path, capsys
):
    """They would be days of the year 21."""
    assert run("predict", model, write(tmp_path, ["13/01/21 05:40"], "new.csv")) == 1
    err = capsys.readouterr().err
    assert "dates of the form %d/%m/%Y %H:%M, got '13/01/21 05:40' in row 1" in err


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%Y%m%d", "%Y%m%d%H%M", None])
def test_the_python_code_of_a_report_reads_dates_as_the_command_does(
    run, tmp_path, monkeypatch, rng, form
):
    monkeypatch.chdir(tmp_path)
    days = [datetime.date(2021, 3, 1) + datetime.timedelta(days=9 * i) for i in range(60)]
    when = [day.strftime(form) for day in days] if form else days
    file, y = "t.csv" if form else "t.parquet", rng.normal(size=60)
    table = pl.DataFrame({"when": when, "x": rng.normal(size=60), "y": y}).sample(60, shuffle=True)
    (table.write_csv if form else table.write_parquet)(file)
    options = ("-t", "y", "--rule", "2.0", "--alpha", "0.1")
    assert run("report", file, *options, "-o", "r.html")[0] == 0
    assert run("fit", file, *options, "-o", "m.skops")[0] == 0
    _, out, _ = run("predict", "m.skops", file)
    expected = [float(line) for line in out.split()[1:]]
    page = (tmp_path / "r.html").read_text()
    blocks = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page, re.DOTALL)[:2]
    for block in blocks:
        names = {}
        exec(unescape(block), names)
        np.testing.assert_allclose(names["model"].predict(names["X"]), expected, rtol=1e-6)


def test_gaps_in_a_column_of_days_make_no_hours_and_are_marked_once(tmp_path):
    """A missing date counted as one more hour of the day."""
    days = [f"{START + datetime.timedelta(days=31 * i):%Y-%m-%d}" for i in range(30)] + ["", ""]
    rows = read_rows(write(tmp_path, days), ["y"], Reading(missing="impute"))
    parts = ["year", "month sine", "weekday sine", "month cosine", "weekday cosine"]
    assert rows.dates["when"].parts == parts
    assert rows.filled().X.columns == [*(f"when ({part})" for part in parts), "when (missing)"]
    assert rows.gappy.columns == ["when"]
