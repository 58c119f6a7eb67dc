"""The command on places: distances in metres between latitudes and longitudes."""

import json
import sys

import numpy as np
import polars as pl
import pytest

from jacridge import JacobianKernelRidge

pytest.importorskip("pyproj")


@pytest.fixture
def stations(tmp_path, rng):
    """Longitude before latitude, and a column that says nothing of places."""
    lon, lat = rng.uniform(-9, 3, 40), rng.uniform(36, 44, 40)
    table = {"lon": lon, "lat": lat, "staff": np.arange(40.0) % 7, "temperature": 30 - lat / 2}
    pl.DataFrame(table).write_csv(tmp_path / "stations.csv")
    return tmp_path / "stations.csv"


ON_GLOBE = ("--target", "temperature", "--metric", "geodesic")


def test_latitude_and_longitude_are_found_by_their_names(stations, run, tmp_path):
    model, out = tmp_path / "model.skops", tmp_path / "out.csv"
    code, _, err = run("fit", stations, *ON_GLOBE, "--rule", "median", "-o", model)
    assert code == 0
    assert "Note: `lat` is latitude and `lon` longitude, in degrees; no other column" in err
    assert "plain numbers" not in err
    assert run("predict", model, stations, "-o", out)[0] == 0
    table = pl.read_csv(stations)
    X, y = table.select("lat", "lon").to_numpy(), table["temperature"].to_numpy()
    expected = JacobianKernelRidge("median", metric="geodesic").fit(X, y).predict(X)
    np.testing.assert_allclose(pl.read_csv(out)["prediction"], expected, rtol=1e-7)


def test_every_command_that_measures_distances_does_so_in_metres(stations, run):
    given = (*ON_GLOBE, "--json")
    code, out, _ = run("select", stations, *given, "--rule", "median")
    assert code == 0
    assert 1e5 < json.loads(out)["sigma"] < 1e6
    assert json.loads(out)["metric"] == "geodesic"
    code, out, _ = run("compare", stations, *given, "--rules", "median,linear", "--splits", 1)
    assert code == 0
    assert 1e5 < json.loads(out)["rules"][0]["sigma"] < 1e6
    code, out, _ = run("effects", stations, *given, "--rule", "median")
    assert code == 0
    assert json.loads(out)["effects"]["term"] == ["lat", "lon"]


def test_columns_that_are_not_found_can_be_named(stations, run, tmp_path):
    given = ("fit", stations, *ON_GLOBE, "--rule", "median", "-o", tmp_path / "m.skops")
    code, _, err = run(*given, "--drop", "lat")
    assert code == 2
    assert "needs a latitude and a longitude column, got `lon`, `staff`. Name" in err
    assert "--features LATITUDE,LONGITUDE." in err
    code, _, err = run(*given, "--features", "staff,lon")
    assert code == 0
    assert "`staff` is latitude and `lon` longitude" in err
    code, _, err = run(*given, "--features", "lat,lon,staff")
    assert code == 2
    assert "longitude column, got `lat`, `lon`, `staff`. Name" in err


@pytest.mark.parametrize(
    ("latitudes", "message"),
    [
        (["north", "south"], "`lat` must hold numbers, got 'north' in row 1"),
        (["2020-01-03", "2020-02-03"], "`lat` must hold numbers, got '2020-01-03' in row 1"),
        (["51,5", "47,1"], "Add --decimal , to read decimal commas."),
        (["100.5", "47.1"], "The features must hold latitudes from -90 to 90"),
    ],
)
def test_latitudes_that_are_none_are_told(run, tmp_path, latitudes, message):
    table = tmp_path / "t.csv"
    rows = "".join(f"{latitudes[i % 2]};{i};{i % 5}\n" for i in range(20))
    table.write_text(f"lat;lon;temperature\n{rows}")
    code, _, err = run("fit", table, *ON_GLOBE, "--rule", "median", "-o", tmp_path / "m.skops")
    assert code == 1
    assert message in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("compare", "--metric", "geodesic"), "Invalid value for --metric: needs a FILE."),
        (("fit", "{file}", *ON_GLOBE, "-o", "{folder}/m.onnx"), "ONNX cannot measure distances"),
        (
            ("fit", "{file}", *ON_GLOBE, "-o", "{folder}/m", "--engine", "dask"),
            "--metric: must be another one with --engine dask, got geodesic.",
        ),
    ],
)
def test_what_cannot_be_done_on_the_globe_is_told_before_the_work(run, stations, args, message):
    words = (arg.format(file=stations, folder=stations.parent) for arg in args)
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())
    assert "is latitude" not in err


def test_without_its_extra_the_globe_says_how_to_get_it(run, stations, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyproj", None)
    code, _, err = run("select", stations, *ON_GLOBE)
    assert code == 1
    assert "pip install 'jacridge[geo]'" in err
    assert "is latitude" not in err


def test_no_metric_is_advised_without_evidence_that_it_helps(stations, run):
    code, _, err = run("select", stations, "--target", "temperature", "--drop", "staff")
    assert code == 0
    assert "geodesic" not in err


def test_columns_that_the_globe_leaves_out_are_named(stations, run):
    code, _, err = run("select", stations, *ON_GLOBE, "--rule", "median")
    assert code == 0
    assert "Warning: `staff` is left out: --metric geodesic" in err
    given = ("--features", "lat,lon", "--rule", "median")
    assert "left out" not in run("select", stations, *ON_GLOBE, *given)[2]


def test_a_metric_that_a_command_does_not_have_is_refused(stations, run, tmp_path):
    code, _, err = run("select", stations, "--metric", "full")
    assert code == 2
    assert "--metric: must be one of auto, euclidean, geodesic, got 'full'." in err
    code, _, err = run("fit", stations, "-t", "staff", "-m", "precomputed", "-o", tmp_path / "m")
    assert code == 2
    assert "--metric: must be one of euclidean, scaled, diagonal, full, auto, geodesic" in err


def test_a_metric_takes_the_place_of_standardised_columns(stations, run):
    given = ("fit", stations, "-t", "temperature", "--rule", "median", "--json")
    found = {}
    for metric in ("auto", "scaled", "euclidean"):
        code, out, _ = run(*given, "--metric", metric, "-o", stations.with_name("m.skops"))
        assert code == 0
        found[metric] = json.loads(out)["sigma"]
    assert found["scaled"] == pytest.approx(found["auto"], rel=1e-9)
    assert found["euclidean"] > 1.5 * found["auto"]


@pytest.mark.slow
def test_a_report_on_places_measures_in_metres_and_shows_how_to_repeat_it(stations, run, tmp_path):
    page = tmp_path / "page.html"
    code, _, err = run("report", stations, *ON_GLOBE, "--rule", "median", "-o", page)
    assert code == 0, err
    text = page.read_text("utf-8")
    assert "⚠ <code>staff</code> is left out" in text
    assert "metric: metres on the globe" in text
    assert "--metric geodesic" in text
    assert "metric=&#x27;geodesic&#x27;" in text
    assert "plain numbers" not in text
    assert "scikit-learn only" not in text
    assert "straight-line distances through the globe" in text
