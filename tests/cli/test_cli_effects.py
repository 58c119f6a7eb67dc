"""The command `effects`: its numbers are those of the library, in the units of the columns."""

import json

import numpy as np
import polars as pl
import pytest

from jacridge import JacobianKernelClassifier, JacobianKernelRidge


@pytest.fixture
def houses(tmp_path, rng):
    """A CSV file of 150 houses whose price is a plane in columns of unlike scales."""
    area, age = rng.uniform(50, 250, size=150), rng.uniform(0, 100, size=150)
    garden, town = rng.integers(2, size=150), rng.choice(["Bath", "York", "Hull"], size=150)
    price = 2 * area - 0.5 * age + 10 * garden + 40 * (town == "Bath") + rng.normal(size=150)
    columns = {"area": area, "age": age, "garden": garden, "town": town, "price": price}
    path = tmp_path / "houses.csv"
    pl.DataFrame(columns).write_csv(path)
    return path


def test_effects_are_in_the_units_of_the_columns(run, houses):
    code, out, _ = run("effects", houses, "-t", "price", "--json")
    assert code == 0
    found = json.loads(out)["effects"]
    assert found["term"] == ["area", "age", "garden", "town", "town"]
    assert found["contrast"] == ["dY/dX", "dY/dX", "1 - 0", "Hull - Bath", "York - Bath"]
    np.testing.assert_allclose(found["estimate"], [2, -0.5, 10, -40, -40], rtol=0.1)  # noisy
    _, plain, _ = run("effects", houses, "-t", "price", "--json", "--no-standardize")
    assert json.loads(plain)["effects"]["term"] == found["term"]


def test_missing_texts_are_never_the_reference_level(run, houses):
    """The parenthesis of `(missing)` sorts before all letters."""
    table = pl.read_csv(houses)
    gaps = pl.when(pl.int_range(pl.len()) % 5 > 0).then("town").alias("town")
    table.with_columns(gaps).write_csv(houses)
    args = ("--missing", "impute", "--variables", "town", "--rule", "3.0", "--json")
    found = json.loads(run("effects", houses, "-t", "price", *args)[1])["effects"]
    assert found["contrast"] == ["Hull - Bath", "York - Bath", "(missing) - Bath"]


def test_slopes_times_differences_are_differences_of_predictions(run, houses, tmp_path):
    """The same model, asked for its predictions at rows that differ in one column."""
    options = ("--rule", "3.0", "--alpha", "0.01")
    assert run("fit", houses, "-t", "price", "-o", tmp_path / "model.skops", *options)[0] == 0
    _, out, _ = run("effects", houses, "-t", "price", "--variables", "age", "--json", *options)
    table = pl.read_csv(houses)
    means = []
    for step in (-1e-3, 1e-3):
        table.with_columns(pl.col("age") + step).write_csv(tmp_path / "moved.csv")
        found = run("predict", tmp_path / "model.skops", tmp_path / "moved.csv", "--json")[1]
        means.append(np.mean(json.loads(found)["predictions"]["prediction"]))
    slope = (means[1] - means[0]) / 2e-3
    np.testing.assert_allclose(json.loads(out)["effects"]["estimate"], [slope], rtol=1e-6)


def test_effects_are_printed_as_a_table_or_written_to_a_file(run, houses, tmp_path):
    _, out, _ = run("effects", houses, "-t", "price", "--variables", "area,town", "--robust")
    assert "robust standard errors" in out
    assert "York - Bath" in out
    code, out, _ = run(
        "effects", houses, "-t", "price", "--by", "town", "-o", tmp_path / "effects.csv"
    )
    assert code == 0
    table = pl.read_csv(tmp_path / "effects.csv")
    assert table["by"].unique().sort().to_list() == ["Bath", "Hull", "York"]


def test_clustered_errors_are_those_of_the_estimator(run, houses):
    """A column of groups is no feature, and errors are those of the same groups in memory."""
    frame = pl.read_csv(houses)
    groups = np.arange(len(frame)) % 10
    frame = frame.select("area", "age", "price").with_columns(pl.Series("street", groups))
    frame.write_csv(houses)
    options = ("--rule", "90", "--alpha", "0.01", "--no-standardize", "--json")
    _, out, _ = run("effects", houses, "-t", "price", "--cluster", "street", *options)
    found = json.loads(out)
    X, y = frame.select("area", "age").to_numpy(), frame["price"].to_numpy()
    est = JacobianKernelRidge(90.0, 0.01).fit(X, y)
    wanted = [row.std_error for row in est.effects(cluster=groups)]
    assert found["errors"] == "clustered"
    assert found["effects"]["term"] == ["area", "age"]
    np.testing.assert_allclose(found["effects"]["std_error"], wanted, rtol=1e-7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cluster", "town", "--features", "area,town"], "cannot be a feature: it is the clus"),
        (["--cluster", "towns"], "Did you mean `town`?"),
        (["--variables", "height"], "There is no feature `height`. There are"),
        (["--by", "area"], "Groups of `by` must have at least two rows, got 1"),
        (["--level", "2"], "must lie between 0 and 1, got 2"),
        (["--solver", "pcg"], 'must be "exact" or "nystrom", got "pcg"'),
    ],
)
def test_what_has_no_effects_is_refused_in_words(run, houses, options, message):
    code, _, err = run("effects", houses, "-t", "price", "--rule", "3.0", *options)
    assert code > 0
    assert message in " ".join(err.split())


def test_a_constant_column_is_named_and_left_out(run, houses):
    table = pl.read_csv(houses).with_columns(pl.lit("UK").alias("country"), pl.lit(3.0).alias("k"))
    table.write_csv(houses)
    code, out, err = run("effects", houses, "-t", "price", "--rule", "3.0", "--json")
    assert code == 0
    assert "`country` is constant and has no effect" in err
    assert "country" not in json.loads(out)["effects"]["term"]


def test_the_model_is_that_of_the_command_fit(run, houses, tmp_path):
    """The rule `scale` depends on the means of the columns, which `fit` subtracts."""
    options = ("-t", "price", "--rule", "scale", "--features", "area,age")
    table = pl.read_csv(houses)
    table.with_columns(pl.col("area", "age") + 1e5).write_csv(tmp_path / "moved.csv")
    one, other = (
        json.loads(run("effects", file, *options, "--json")[1])["effects"]["estimate"]
        for file in (houses, tmp_path / "moved.csv")
    )
    np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.fixture
def patients(tmp_path, rng):
    """A CSV file of 120 patients, their state in words and whether they came again."""
    age, dose = rng.uniform(20, 90, size=120).round(2), rng.uniform(0, 5, size=120).round(3)
    sick = 0.05 * (age - 50) - dose + 2 + rng.normal(size=120)
    state = np.array(["ill", "so-so", "well"])[np.digitize(-sick, [-1, 1])]
    columns = {"age": age, "dose": dose, "state": state, "again": (sick > 0).astype(int)}
    path = tmp_path / "patients.csv"
    pl.DataFrame(columns).write_csv(path)
    return path


@pytest.mark.parametrize(
    ("target", "labels", "said"),
    [
        (
            "state",
            ["ill", "so-so", "well"],
            "`state` holds text, so the model predicts its 3 classes",
        ),
        ("again", ["1"], "`again` holds two values, 0 and 1, which are taken as classes"),
    ],
)
def test_effects_on_classes_are_those_of_the_classifier(run, patients, target, labels, said):
    """Scaled by the standard deviations of the columns, and back to their units."""
    options = ("--features", "age,dose", "--rule", "1.5", "--alpha", "0.1", "--json")
    code, out, err = run("effects", patients, "-t", target, *options)
    result = json.loads(out)
    found = result["effects"]
    assert (code, result["task"], result["errors"]) == (0, "classification", "robust")
    assert said in err
    assert found["target"] == np.repeat(labels, 2).tolist()
    frame = pl.read_csv(patients)
    X = frame.select("age", "dose").to_numpy()
    scale = X.std(axis=0)
    est = JacobianKernelClassifier(1.5, 0.1).fit(X / scale, frame[target].to_numpy())
    known = est.effects().dict()
    for name in ("estimate", "std_error"):
        np.testing.assert_allclose(
            np.reshape(found[name], (-1, 2)) * scale, np.reshape(known[name], (-1, 2)), rtol=1e-6
        )
    _, out, err = run("effects", patients, "-t", target, *options[:-1])
    assert "predicted probabilities are associations, not causes" in out


def test_two_values_have_effects_as_numbers_if_asked_for(run, patients):
    options = ("--features", "age,dose", "--rule", "1.5", "--task", "regression", "--json")
    code, out, err = run("effects", patients, "-t", "again", *options)
    assert code == 0
    assert (json.loads(out)["task"], json.loads(out)["errors"]) == ("regression", "even")
    assert "classes" not in err


def test_clustered_effects_on_classes_are_those_of_the_classifier(run, patients):
    frame = pl.read_csv(patients).with_columns(ward=np.arange(120) % 8)
    frame.write_csv(patients)
    options = ("--features", "age,dose", "--rule", "9", "--alpha", "0.1", "--no-standardize")
    _, out, _ = run("effects", patients, "-t", "again", "--cluster", "ward", *options, "--json")
    X, y = frame.select("age", "dose").to_numpy(), frame["again"].to_numpy()
    known = JacobianKernelClassifier(9.0, 0.1).fit(X, y).effects(cluster=frame["ward"].to_numpy())
    found = json.loads(out)
    assert found["errors"] == "clustered"
    wanted = [row.std_error for row in known]
    np.testing.assert_allclose(found["effects"]["std_error"], wanted, rtol=1e-6)


def test_what_averages_hide_is_noted(run, tmp_path, rng):
    """A hump, whose average slope is zero, and two columns that share one effect."""
    cm, age = rng.uniform(150, 200, 80), rng.uniform(20, 80, 80)
    columns = {"cm": cm, "inches": cm / 2.54, "age": age}
    kilos = cm - 100 - (age - 50) ** 2 / 100 + rng.normal(size=80)
    pl.DataFrame({**columns, "kilos": kilos}).write_csv(tmp_path / "t.csv")
    given = ("effects", tmp_path / "t.csv", "-t", "kilos", "--rule", "3", "--alpha", "0.01")
    _, _, err = run(*given)
    assert "Note: `age` raises the prediction in some rows and lowers it in others" in err
    assert "say nearly the same share one effect: `cm` and `inches`." in err
    _, _, err = run(*given, "--variables", "cm")
    assert "Note" not in err


def test_effects_of_a_date_are_asked_for_by_the_name_of_its_column(run, tmp_path, rng):
    days = pl.date_range(pl.date(2019, 1, 1), pl.date(2021, 12, 31), eager=True).sample(60, seed=1)
    area = rng.uniform(40, 200, 60)
    price = area + 20 * (days.dt.year() + days.dt.ordinal_day() / 366)  # which has a slope
    table = pl.DataFrame({"sold": days, "area": area, "price": price})
    table.write_csv(tmp_path / "t.csv")
    given = ("effects", tmp_path / "t.csv", "-t", "price", "--rule", "3.0", "--json")

    def terms(wanted):
        code, out, err = run(*given, "--variables", wanted)
        return json.loads(out)["effects"]["term"] if code == 0 else err

    assert terms("sold") == ["sold (year)", "sold (month)", "sold (weekday)"]
    assert terms("sold (weekday)") == ["sold (weekday)"]
    assert terms("sold (month sine),area") == ["sold (month sine)", "area"]
    assert "There is no feature `solt`. Did you mean `sold`?" in terms("solt")


@pytest.mark.parametrize(
    ("count", "options", "why"),
    [
        (400, (), "the dates must cover two rounds of a cycle"),
        (800, ("--by", "town"), "their effects are over all rows, without --by"),
    ],
)
def test_cycles_of_dates_that_are_not_shown_are_named(run, tmp_path, rng, count, options, why):
    day = np.datetime64("2020-01-01") + np.arange(count)
    season = np.sin(np.arange(count) / 58) + 0.1 * rng.normal(size=count)
    columns = {"day": day.astype(str), "town": np.array(["Bath", "York"])[day.astype(int) % 2]}
    pl.DataFrame({**columns, "y": season}).write_csv(tmp_path / "t.csv")
    asked = ("-t", "y", "--rule", "1.5", "--variables", "day (month)", *options)
    code, out, err = run("effects", tmp_path / "t.csv", *asked)
    assert (code, out) == (0, "There are no average effects to show.\n")
    assert f"Note: `day (month)` is not shown: {why}.\n" in err


def test_effects_of_cycles_are_on_the_classes_that_are_shown(run, tmp_path, rng):
    """Of two classes, on the second one."""
    day = np.datetime64("2020-01-01") + np.arange(200)
    late = np.where((day.astype(int) + 3) % 7 > 4, "yes", "no")
    pl.DataFrame({"day": day.astype(str), "late": late}).write_csv(tmp_path / "t.csv")
    asked = ("-t", "late", "--rule", "1.5", "--variables", "day (weekday)", "--json")
    code, out, _ = run("effects", tmp_path / "t.csv", *asked)
    found = json.loads(out)["effects"]
    assert (code, found["target"], found["kind"]) == (0, ["yes"], ["range"])
    assert found["contrast"][0].partition(" - ")[0] in ("Sat", "Sun")
    assert 0.5 < found["estimate"][0] <= 1
    text = run("effects", tmp_path / "t.csv", *asked[:-1])[1]
    assert "For months, weekdays and hours, the effect is the highest minus the lowest" in text
    assert "nan" not in text
