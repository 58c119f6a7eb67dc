"""Sum up a folder of `jacridge paper all` for the page `reproduce`: small tables and pictures.

    python docs/reproduce_data/make.py OUT

reads the CSV files in OUT and published.csv beside this file, and writes what the page shows. The
page itself is built from these files, so that no number on it is typed by hand.
"""

import csv
import sys
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from jacridge._geometry.kernels import KERNELS
from jacridge.experiments import EXPERIMENTS, kernels, real_data, temperature
from jacridge.experiments._rules import LABELS
from jacridge.experiments._table import largest, read_rows

HERE = Path(__file__).parent
AUTHORS_SEEDS = 50  # of the sweeps in published.csv; medians over fewer are not comparable
PAPER_NAMES = {**real_data.TITLES, "french_2d": "2-D temperature", "french_1d": "1-D temperature"}
PAPER_NAMES["cauchy"] = "Cauchy"


def main(out):
    published = read_rows(HERE / "published.csv")
    tables = {path.stem: read_rows(path) for path in sorted(out.glob("*.csv"))}
    for make in (table2, jackknife, sweep_points, beyond, sources):
        for name, rows in make(tables, published).items():
            write(name, rows)
    for name in EXPERIMENTS:
        if name != "table2" and (out / f"{name}.png").exists():
            shrink(out / f"{name}.png", HERE / f"{name}.png")


def write(name, rows):
    if rows:
        with (HERE / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def shrink(source, goal):
    """A picture of at most 1300 pixels and 128 colours."""
    from PIL import Image

    image = Image.open(source).convert("RGB")
    image.thumbnail((1300, 1300))
    image.quantize(128).save(goal, optimize=True)


def named(published, **wanted):
    """The one published row with these values, or None."""
    found = [row for row in published if all(row[k] == v for k, v in wanted.items())]
    assert len(found) <= 1, wanted
    return found[0] if found else None


def spread(value, low="", high=""):
    """A number as the paper prints it, with its deciles if it has any."""
    return f"{value:.2g}" + (f" ({low:.2g}, {high:.2g})" if low != "" else "")


def digits(value, number=5):
    return f"{float(f'{value:.{number}g}'):g}"


def shortest(rows, like, quantity):
    """The least time of a data set and rule: other work on the machine only adds to it."""
    names = like["dataset"], like["rule"]
    times = [row[quantity] for row in rows if (row["dataset"], row["rule"]) == names]
    return "" if "" in times else digits(min(times), 2)


def table2(tables, published):
    """Summary, comparison with the paper, picture, and the rows themselves.

    What was said of a rule stays while the folder has fewer splits of it.
    """
    rows = largest(tables.get("table2", []), "rows_used")
    if not rows:
        return {}
    made = real_data.summarise(rows)
    for row in made:
        row["formula_least"] = shortest(rows, row, "seconds_formula")
        row["seconds_least"] = shortest(rows, row, "seconds")
    found = {(row["dataset"], row["rule"]): row for row in read_rows(HERE / "table2.csv")}
    for row in made:
        name = row["dataset"], row["rule"]
        if row["splits"] >= found.get(name, row)["splits"]:
            found[name] = row
    order = product(real_data.TITLES, real_data.ORDER)
    summary = [found[name] for name in order if name in found]
    compared = [beside_published(row, published) for row in summary]
    with TemporaryDirectory() as folder:
        picture = Path(folder) / "table2.png"
        real_data.draw_summary(summary).savefig(picture, dpi=150)
        shrink(picture, HERE / "table2.png")
    return {
        "table2_rows": rows,
        "table2": summary,
        "table2_compared": compared,
        "table2_agreement": agreement(compared),
        "table2_seed_0": seed_0(rows, published),
    }


def beside_published(row, published):
    """A line of the summary beside that of the paper."""
    where = {"result": "table2", "dataset": row["dataset"], "rule": row["rule"]}
    r2, seconds = (named(published, **where, quantity=q) for q in ("r2", "seconds"))
    return {
        "data": PAPER_NAMES[row["dataset"]],
        "rule": LABELS[row["rule"]],
        "splits": row["splits"],
        "published R2": spread(r2["value"], r2["low"], r2["high"]) if r2 else "",
        "R2 here": spread(row["r2"], row["r2_low"], row["r2_high"]),
        "within deciles": inside(row["r2"], r2) if r2 else "",
        "p": "" if row["r2_p"] == "" else f"{row['r2_p']:.2g}",
        "published s": digits(seconds["value"], 2) if seconds else "",
        "formula s": row["formula_least"],
        "X to sigma s": row["seconds_least"],
        "sigma": f"{row['sigma']:.3g}",
    }


def whole_splits(rows):
    """The rows of splits that all five data sets have."""
    seeds = [{row["seed"] for row in rows if row["dataset"] == name} for name in real_data.TITLES]
    return [row for row in rows if row["seed"] in set.intersection(*seeds)]


def agreement(compared):
    """On how many data sets the mean of a rule is within the published deciles."""
    made = []
    for rule in real_data.ORDER:
        marks = [row["within deciles"] for row in compared if row["rule"] == LABELS[rule]]
        if any(marks):
            made.append({"rule": rule, "within": marks.count("yes"), "of": len(marks)})
    return made


def inside(value, published):
    """Whether a mean is within the published deciles, which have two digits."""
    room = 0.5 * 10.0 ** (np.floor(np.log10(abs(published["low"]))) - 1)
    return "yes" if published["low"] - room <= value <= published["high"] + room else "no"


def seed_0(rows, published):
    """Wood fibres with the authors' first seed, for the rules that their code has."""
    theirs = {row["rule"]: row["value"] for row in published if row["result"] == "table2_seed_0"}
    first = [row for row in rows if row["seed"] == 0 and row["dataset"] == "wood_fibres"]
    made = [
        {
            "rule": LABELS[row["rule"]],
            "R2 (authors)": theirs[row["rule"]],
            "R2 (here)": f"{row['r2']:.4f}",
            "sigma": digits(row["sigma"]),
        }
        for row in first
        if row["rule"] in theirs
    ]
    seen, known = {row["rule"] for row in made}, {LABELS[rule] for rule in theirs}
    before = read_rows(HERE / "table2_seed_0.csv")
    return made + [row for row in before if row["rule"] in known - seen]


def jackknife(tables, published):
    made = {"jackknife": []}
    for name, unit in (("fig4", 1000), ("fig5", 1)):
        rows, compared = tables.get(name, []), []
        for rule in dict.fromkeys(row["rule"] for row in rows):
            ours = [row for row in rows if row["rule"] == rule]
            sigma = np.array([row["sigma"] for row in ours]) / unit
            found = {"sigma_mean": sigma.mean(), "sigma_std": temperature.jackknife_std(sigma)}
            r2 = np.mean([row["r2"] for row in ours]) if name == "fig5" else ""
            made["jackknife"].append({"figure": name, "rule": rule, **found, "r2_mean": r2})
            compared.append(
                beside(name, rule, found | ({"r2_mean": r2} if r2 != "" else {}), published)
            )
        made[f"{name}_compared"] = compared
    return made


def beside(name, rule, found, published):
    """A line with each quantity as the authors' code gave it and as it is here."""
    line = {"rule": LABELS[rule]}
    for quantity, value in found.items():
        theirs = named(published, result=name, rule=rule, quantity=quantity)
        title = {"sigma_mean": "mean sigma", "sigma_std": "deviation", "r2_mean": "mean R2"}[
            quantity
        ]
        line[f"{title} (authors)"] = digits(theirs["value"]) if theirs else ""
        line[f"{title} (here)"] = digits(value)
    return line


def sweep_points(tables, published):
    """Medians of the sweeps beside those of the authors' code, where it was run again."""
    compared = []
    for name, over in (("fig6", "n"), ("fig7", "lambda")):
        groups = {}
        for row in tables.get(name, []):
            key = (row["dataset"], row["n"], row["alpha"], row["rule"])
            groups.setdefault(key, []).append(row)
        for (dataset, n, lam, rule), rows in groups.items():
            result = f"sweep over {over}; n = {n}; lambda = {lam:g}"
            where = {"result": result, "dataset": dataset, "rule": rule}
            r2, sigma = (named(published, **where, quantity=f"{q}_median") for q in ("r2", "sigma"))
            if r2 is not None and len(rows) == AUTHORS_SEEDS:
                compared.append(
                    {
                        "data": PAPER_NAMES[dataset],
                        "n": n,
                        "lambda": f"{lam:g}",
                        "rule": LABELS[rule],
                        "median R2 (authors)": f"{r2['value']:.4f}",
                        "median R2 (here)": f"{np.median([row['r2'] for row in rows]):.4f}",
                        "median sigma (authors)": digits(sigma["value"]),
                        "median sigma (here)": digits(np.median([row["sigma"] for row in rows])),
                    }
                )
    return {"sweeps_compared": compared}


def beyond(tables, published):
    return {
        "beyond_rules": rules_table(whole_splits(largest(tables.get("beyond_rules", []), "n"))),
        "beyond_true": true_table(largest(tables.get("beyond_true", []), "n")),
        "beyond_subsamples": subsample_table(tables.get("beyond_subsamples", [])),
        "beyond_gp": gp_table(largest(tables.get("beyond_gp", []), "n")),
        "beyond_high_p": high_p_table(largest(tables.get("beyond_high_p", []), "n")),
        "beyond_kernels": kernels_table(largest(tables.get("beyond_kernels", []), "n")),
    }


def rules_table(rows):
    made = []
    for method in dict.fromkeys(row["method"] for row in rows):
        ours = [row for row in rows if row["method"] == method]
        line = {"method": method, "training rows": ours[0]["n"]}
        for name, title in real_data.TITLES.items():
            line[title] = f"{np.mean([r['r2'] for r in ours if r['dataset'] == name]):.3f}"
        line["mean"] = f"{np.mean([row['r2'] for row in ours]):.3f}"
        line["seconds"] = f"{np.median([row['seconds'] for row in ours]):.2g}"
        made.append(line)
    return made


def true_table(rows):
    made = []
    for dataset, lam in dict.fromkeys((row["dataset"], row["alpha"]) for row in rows):
        ours = [row for row in rows if (row["dataset"], row["alpha"]) == (dataset, lam)]
        found = [row for row in ours if row["sigma_true"] != ""]
        ratio = [row["sigma_true"] / row["sigma_0"] for row in found]
        made.append(
            {
                "data": PAPER_NAMES[dataset],
                "lambda": f"{lam:g}",
                "true minima found": f"{len(found)} of {len(ours)}",
                "sigma true / sigma 0": f"{np.median(ratio):.2g}" if found else "",
                "R2 at sigma 0": f"{np.median([row['r2_sigma_0'] for row in ours]):.2f}",
                "R2 at the true minimum": f"{np.median([row['r2_true'] for row in found]):.2f}"
                if found
                else "",
                "best R2": f"{np.median([row['r2_best'] for row in ours]):.2f}",
            }
        )
    return made


def subsample_table(rows):
    made = []
    for dataset, rule in dict.fromkeys((row["dataset"], row["rule"]) for row in rows):
        ours = [row for row in rows if (row["dataset"], row["rule"]) == (dataset, rule)]
        line = {"data": PAPER_NAMES[dataset], "rule": LABELS[rule]}
        for m in sorted({row["m"] for row in rows}):
            sigma = np.array([row["sigma"] for row in ours if row["m"] == m])
            line[f"{m} rows"] = with_deviation(sigma) if len(sigma) else ""
        made.append(line)
    return made


def with_deviation(values):
    deviation = f" ± {100 * values.std() / values.mean():.1f} %" if len(values) > 1 else ""
    return f"{np.median(values):.3g}{deviation}"


def gp_table(rows):
    made = []
    for p, share in dict.fromkeys((row["p"], row["share"]) for row in rows):
        line = {"p": p, "true scale / sqrt(p)": share}
        for rule in dict.fromkeys(row["rule"] for row in rows):
            ours = [r for r in rows if (r["p"], r["share"], r["rule"]) == (p, share, rule)]
            ratio = np.median([row["sigma"] / row["scale"] for row in ours])
            loss = np.median([row["r2_scale"] - row["r2"] for row in ours])
            line[rule] = f"{ratio:.2g} ({loss:.2g})"
        made.append(line)
    return made


def high_p_table(rows):
    made = []
    for p in dict.fromkeys(row["p"] for row in rows):
        line = {"p": p}
        for rule in dict.fromkeys(row["rule"] for row in rows):
            ours = [row for row in rows if (row["p"], row["rule"]) == (p, rule)]
            ratio = np.median([row["sigma"] / row["l_max"] for row in ours])
            line[rule] = f"{ratio:.2g} ({np.median([row['r2'] for row in ours]):.2f})"
        made.append(line)
    return made


def kernels_table(rows):
    """Mean test R2, one line for each rule, one column for each kernel that has it."""
    means = kernels.mean_r2(whole_splits(rows)) if rows else {}
    made = []
    for rule in dict.fromkeys(rule for _, rule in means):
        line = {kernel: means.get((kernel, rule)) for kernel in KERNELS}
        shown = {kernel: "–" if r2 is None else f"{r2:.3f}" for kernel, r2 in line.items()}
        made.append({"rule": rule, **shown})
    return made


def sources(tables, published):
    """How many rows and seeds each table has, and which versions made them.

    What was said of tables that are not in the folder stays.
    """
    made = [
        {"table": name, "rows": len(rows), "seeds": n_seeds(rows), "versions": version}
        for name, rows in tables.items()
        for version in dict.fromkeys(row.get("versions", "") for row in rows)
        if version
    ]
    others = [row for row in read_rows(HERE / "versions.csv") if row["table"] not in tables]
    return {"versions": sorted([*made, *others], key=lambda row: row["table"])}


def n_seeds(rows):
    """The number of seeds that every data set, or every number of features, has."""
    seeds = {}
    for row in rows:
        seeds.setdefault(row.get("dataset", row.get("p")), set()).add(row.get("seed"))
    common = set.intersection(*seeds.values()) - {None}
    return len(common) or ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
