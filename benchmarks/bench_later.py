"""Test R2 on later rows, with candidates compared on random rows and on later rows.

Made series, those that statsmodels ships (extra `bench`), and the paper's appliances by hour if
JACRIDGE_DATA is set. The first 55 % of the rows predict those up to 80 %, and the first 75 % the
others; one line for each table has the mean of the two. R2 is at least -1 in the means.
"""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _ratio import Rows
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from jacridge import AutoKernelRidge

SPLITS = ((0.55, 0.8), (0.75, 1.0))
WORST = -1.0

METHODS = {
    "random": lambda: AutoKernelRidge(random_state=0),
    "later": lambda: AutoKernelRidge(held_out="later", random_state=0),
    "trees": lambda: HistGradientBoostingRegressor(random_state=0),
    "linear": lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))),
}


def in_parts(dates):
    """Dates as the command encodes them: the year, and cycles as sine and cosine."""
    dates = pd.DatetimeIndex(dates)
    columns = [dates.year + (dates.dayofyear - 1) / 366]
    cycles = (dates.month - 1, 12), (dates.dayofweek, 7), (dates.hour, 24)
    for values, length in cycles:
        angle = 2 * np.pi * np.asarray(values) / length
        columns += [np.sin(angle), np.cos(angle)]
    X = np.column_stack([np.asarray(column, dtype=float) for column in columns])
    return X[:, X.std(axis=0) > 0]


def made_series():
    """Name, features and target of eight series whose truth is known."""
    rng = np.random.default_rng(0)
    n, dates = 1095, pd.date_range("2021-01-01", periods=1095)
    t, X = np.arange(n), in_parts(dates)
    season = 4 * np.sin(2 * np.pi * (t - 100) / 365.25)
    week = np.where(dates.dayofweek >= 5, -3.0, 1.0)
    noise, wandering = rng.standard_normal((2, n))
    for i in range(1, n):
        wandering[i] = 0.9 * wandering[i - 1] + 0.6 * wandering[i]
    yield "trend, season, week", X, 0.006 * t + season + week + noise
    yield "season, week", X, season + week + noise
    yield "season, wandering noise", X, season + wandering
    yield "wandering noise", X, wandering
    yield "noise", X, noise
    warm = 15 + 10 * np.sin(2 * np.pi * (t - 110) / 365.25) + rng.normal(0, 2, n)
    demand = 0.15 * np.maximum(warm - 18, 0) ** 1.5 + 0.5 * np.maximum(14 - warm, 0) + 2 * week
    yield "demand", np.column_stack([X, warm]), demand + 0.8 * rng.standard_normal(n)
    month, dates = np.arange(144), pd.date_range("2010-01-01", periods=144, freq="MS")
    y = 0.4 * month + 0.003 * month**2 + 8 * np.sin(2 * np.pi * month / 12)
    yield "curved trend, season", in_parts(dates), y + rng.normal(0, 2, 144)
    Z = rng.standard_normal((500, 5))
    y = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + 0.004 * t[:500] + rng.normal(0, 0.3, 500)
    yield "drivers, drift", np.column_stack([t[:500], Z]), y


def real_series():
    """Name, features and target of series in statsmodels, and of appliances by hour."""
    from statsmodels import datasets

    co2 = datasets.co2.load_pandas().data.dropna()[::2]
    yield "co2", in_parts(co2.index), co2["co2"].to_numpy()
    sunspots = datasets.sunspots.load_pandas().data
    yield "sunspots", sunspots[["YEAR"]].to_numpy(), sunspots["SUNACTIVITY"].to_numpy()
    nile = datasets.nile.load_pandas().data
    yield "nile", nile[["year"]].to_numpy(), nile["volume"].to_numpy()
    elnino = datasets.elnino.load_pandas().data.set_index("YEAR")
    months = pd.date_range(f"{int(elnino.index[0])}-01-01", periods=elnino.size, freq="MS")
    yield "elnino", in_parts(months), elnino.to_numpy().ravel()
    macro = datasets.macrodata.load_pandas().data
    quarters = macro["year"] + (macro["quarter"] - 1) / 4
    X = np.column_stack([quarters, macro[["realgdp", "realinv", "realdpi", "unemp"]]])
    yield "consumption", X, macro["realcons"].to_numpy()
    X = np.column_stack([quarters, macro[["infl", "tbilrate", "realint", "cpi"]]])
    yield "unemployment", X, macro["unemp"].to_numpy()
    if "JACRIDGE_DATA" in os.environ:
        table = pd.read_csv(Path(os.environ["JACRIDGE_DATA"]) / "appliances_energy.csv.gz")
        hours = pd.date_range("2016-01-11 17:00", periods=len(table), freq="10min").floor("h")
        table = table.groupby(hours).mean()[::2]
        X = np.hstack([in_parts(table.index), table.drop(columns="Appliances").to_numpy()])
        yield "appliances by hour", X, table["Appliances"].to_numpy()


def main():
    warnings.simplefilter("ignore")
    rows, found = Rows(), []
    for name, X, y in [*made_series(), *real_series()]:
        scores = {}
        for method, model in METHODS.items():
            ends = [(int(a * len(y)), int(b * len(y))) for a, b in SPLITS]
            fits = [(model().fit(X[:a], y[:a]), slice(a, b)) for a, b in ends]
            r2 = [r2_score(y[later], fit.predict(X[later])) for fit, later in fits]
            scores[method] = float(np.mean(np.maximum(r2, WORST)))
        rows.add(series=name, rows=len(y), **scores)
        found.append(list(scores.values()))
    rows.add(series="mean", rows="", **dict(zip(METHODS, np.mean(found, axis=0), strict=True)))


if __name__ == "__main__":
    main()
