"""The guide's table: test R2 of the rules by `jacridge compare`, and of boosted trees beside them.

Needs the folder JACRIDGE_DATA for all but the diabetes data.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from _ratio import Rows, path_of, tables, whole_table
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import ShuffleSplit

RULES = "jacobian,jacobian_median,silverman,scale,median,maxvar,loo,auto"
TARGETS = {
    "wood_fibres": "Length",
    "appliances": "Appliances",
    "california": "MedHouseVal",
    "protein": "RMSD",
    "black_smoke": "bs",
}


def main():
    """One line a rule, one column a table."""
    found = {"diabetes": {**compared(), "boosted trees": boosting(*load_diabetes(return_X_y=True))}}
    for name in tables():
        rules = compared(path_of(name), "--target", TARGETS[name])
        found[name] = {**rules, "boosted trees": boosting(*drawn(*whole_table(name)))}
    rows = Rows()
    for rule in found["diabetes"]:
        rows.add(rule=rule, **{name: r2[rule] for name, r2 in found.items()})


def compared(*arguments):
    """Mean test R2 of each rule, as the command prints it."""
    command = [Path(sys.executable).parent / "jacridge", "compare", *arguments]
    options = ["--rules", RULES, "--splits", "10", "--json"]
    done = subprocess.run([*command, *options], stdout=subprocess.PIPE, check=True)
    return {row["rule"]: row["r2_mean"] for row in json.loads(done.stdout)["rules"]}


def drawn(X, y, most=2000):
    """The rows that the command draws."""
    some = np.sort(np.random.default_rng(0).choice(len(y), most, replace=False))
    return X[some], y[some]


def boosting(X, y):
    """Mean test R2 of scikit-learn's boosted trees over the command's splits."""
    folds = ShuffleSplit(10, test_size=0.35, random_state=0)
    model = HistGradientBoostingRegressor(random_state=0)
    scores = [model.fit(X[i], y[i]).score(X[j], y[j]) for i, j in folds.split(y)]
    return float(np.mean(scores))


if __name__ == "__main__":
    main()
