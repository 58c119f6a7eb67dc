"""The command on places: distances in metres between latitudes and longitudes."""

import json
import re

import numpy as np
import polars as pl
import pytest

from jacridge import JacobianKernelRidge
from jacridge.cli import main

pytest.importorskip("pyproj")


@pytest.fixture
def run(capsys):
    """Function that runs the command and returns exit code, stdout and stderr."""

    def call(*args):
        with pytest.raises(SystemExit) as end:
            main([str(arg) for arg in args])
        return end.value.code or 0, *capsys.readouterr()

    return call


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
    assert "Note: `lat` is latitude and `lon` longitude, in degrees." in err
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
    assert "takes a column of latitude and one of longitude, got `lon`, `staff`. Name" in err
    assert "--features LATITUDE,LONGITUDE." in err
    code, _, err = run(*given, "--features", "staff,lon")
    assert code == 0
    assert "`staff` is latitude and `lon` longitude" in err


def test_the_hint_on_places_names_an_option_that_works(stations, run, tmp_path):
    given = ("fit", stations, "--target", "temperature", "--rule", "median", "-o", tmp_path / "m")
    hint = re.search(r"With (--metric \w+)", run(*given)[2])
    assert hint
    assert run(*given, *hint[1].split())[0] == 0


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
    assert "metric: metres on the globe" in text
    assert "--metric geodesic" in text
    assert "metric=&#x27;geodesic&#x27;" in text
    assert "plain numbers" not in text
    assert "scikit-learn only" not in text
    assert "straight distances through the globe" in text
