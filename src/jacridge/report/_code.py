"""Code that a reader of the report can copy: the same model in jacridge and in scikit-learn."""

from __future__ import annotations

import glob
import gzip
import shlex
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from .._files import separator_of
from ._case import Case

ENCODER = 'OneHotEncoder(handle_unknown="ignore", sparse_output=False)'
MISSING = ["NA", "N/A", "NaN", "nan", "null", "NULL", "?"]


@dataclass(frozen=True)
class Source:
    """Where the rows came from: a file, the options that read it, and how many it has more."""

    name: str
    options: tuple[str, ...] = ()
    left_out: int = 0

    @property
    def file(self) -> str:
        """The file that code can read; standard input is gone, so some name stands for it."""
        return "data.csv" if self.name == "-" else self.name


def code_blocks(case: Case, source: Source) -> str:
    """HTML of the blocks, each with a title."""
    blocks = {
        "Python": python_code(case, source),
        "scikit-learn only": sklearn_code(case, source),
        "On the command line": command(case, source),
        "In other packages": elsewhere(case.estimator.bandwidth_),
    }
    return "".join(
        f'<div class="code"><h3>{title}</h3>'
        f'<pre tabindex="0"><code>{escape(text)}</code></pre></div>'
        for title, text in blocks.items()
    )


def python_code(case: Case, source: Source) -> str:
    """A model that chooses its bandwidth again when it is fitted."""
    imports = {"import polars as pl", *_imports(case)}
    return (
        f"{_lines(imports)}\nfrom jacridge import JacobianKernelRidge\n\n{_reading(case, source)}"
        f"model = make_pipeline(\n{_preparing(case)}    JacobianKernelRidge({_options(case)}),\n"
        ").fit(X, y)\nmodel.predict(X)\n"
    )


def sklearn_code(case: Case, source: Source) -> str:
    """The same model without jacridge, the bandwidth written out as gamma."""
    gamma, lam = float(0.5 / case.estimator.bandwidth_**2), case.lam
    imports = {
        "import polars as pl",
        "from sklearn.compose import TransformedTargetRegressor",
        "from sklearn.preprocessing import StandardScaler",
        *_imports(case),
    }
    if case.estimator.solver_ == "nystrom":  # other landmarks: close, not equal
        imports |= {
            "from sklearn.kernel_approximation import Nystroem",
            "from sklearn.linear_model import Ridge",
        }
        m = len(case.estimator.X_fit_)
        features = f"    Nystroem(gamma={gamma!r}, n_components={m}, random_state=0),\n"
        model = f"Ridge(alpha={lam!r}, fit_intercept=False)"
    else:
        imports.add("from sklearn.kernel_ridge import KernelRidge")
        features, model = "", f'KernelRidge(kernel="rbf", gamma={gamma!r}, alpha={lam!r})'
    return (
        f"{_lines(imports)}\n{_reading(case, source)}"
        f"model = make_pipeline(\n{_preparing(case)}{features}"
        "    TransformedTargetRegressor(  # centres y: KernelRidge has no intercept\n"
        f"        {model},\n"
        "        transformer=StandardScaler(with_std=False),\n"
        "    ),\n"
        ").fit(X, y)\n"
        "model.predict(X)\n"
    )


def command(case: Case, source: Source) -> str:
    """The same with the command."""
    bandwidth, alpha = _given(case)
    rule = [] if bandwidth == "jacobian" else ["--rule", str(bandwidth)]
    default = "auto" if bandwidth == "auto" else 1e-3
    chosen = case.lam if isinstance(alpha, list) else alpha  # the command takes no list
    penalty = [] if chosen == default else ["--alpha", str(chosen)]
    scale = [] if case.standardize else ["--no-standardize"]
    options = [*source.options, *rule, *penalty, *scale]
    fit = shlex.join(["jacridge", "fit", source.file, "--target", case.target, *options])
    header = " --no-header" if "--no-header" in source.options else ""
    return (
        f"{fit} -o model.skops\njacridge predict model.skops new.csv{header} -o predictions.csv "
        "--interval 0.9\n"
    )


def elsewhere(sigma: float) -> str:
    """What other packages call the bandwidth."""
    gamma = 0.5 / sigma**2
    return (
        f"scikit-learn KernelRidge, SVR, Nystroem, RBFSampler   gamma        = {gamma:.6g}\n"
        f"scikit-learn RBF, GPyTorch, GPflow                    length scale = {sigma:.6g}\n"
        f"R kernlab rbfdot                                      sigma        = {gamma:.6g}\n"
        f"R KRLS                                                sigma        = {2 * sigma**2:.6g}\n"
    )


def _lines(imports: set[str]) -> str:
    """Imports in the order in which tools sort them."""
    return "".join(f"{line}\n" for line in sorted(imports, key=lambda line: line.split()[1]))


def _imports(case: Case) -> set[str]:
    """What the preparation of the columns needs."""
    needed = {"from sklearn.pipeline import make_pipeline"}
    if case.table.texts:
        needed |= {
            "from sklearn.compose import make_column_transformer",
            "from sklearn.preprocessing import OneHotEncoder",
        }
    if case.standardize:
        needed.add("from sklearn.preprocessing import StandardScaler")
    return needed


def _preparing(case: Case) -> str:
    """Lines of the pipeline before the model."""
    if not case.table.texts:
        return "    StandardScaler(),\n" if case.standardize else ""
    scaler = "StandardScaler()" if case.standardize else '"passthrough"'
    return (
        f"    make_column_transformer(\n        ({scaler}, {case.table.numbers!r}),\n"
        f"        ({ENCODER}, {case.table.texts!r}),\n    ),\n"
    )


def _given(case: Case) -> tuple[Any, Any]:
    """Bandwidth and penalty as asked for, as words, numbers or lists; a function's value."""
    bandwidth = case.estimator.bandwidth_ if callable(case.bandwidth) else case.bandwidth
    return np.asarray(bandwidth).tolist(), np.asarray(case.alpha).tolist()


def _options(case: Case) -> str:
    """Arguments of the estimator; a default that all readers know is left out."""
    bandwidth, alpha = _given(case)
    parts = [] if bandwidth == "jacobian" else [f"bandwidth={bandwidth!r}"]
    return ", ".join([*parts, f"alpha={alpha!r}", f"random_state={case.random_state!r}"])


def _reading(case: Case, source: Source) -> str:
    """Lines that read the table, and leave out the rows that the report left out."""
    kinds = {".parquet": "parquet", ".feather": "ipc", ".arrow": "ipc", ".ipc": "ipc"}
    kind = kinds.get(Path(source.file).suffix.lower(), "csv")
    arguments = [repr(source.file), *(_csv_options(source) if kind == "csv" else [])]
    complete = ".fill_nan(None).drop_nulls()" if source.left_out else ""
    numbered = 'table.columns = [f"column_{i + 1}" for i in range(table.width)]\n'
    return (
        f"columns = {case.table.numbers + case.table.texts!r}\n"
        f"table = {_call(f'pl.read_{kind}', arguments)}\n"
        f"{numbered if '--no-header' in source.options else ''}"
        f"table = table.select([*columns, {case.target!r}]){complete}\n"
        f"X, y = table[columns], table[{case.target!r}].to_numpy()\n"
    )


def _call(function: str, arguments: list[str]) -> str:
    """A call in one line, or with one argument a line if that is long."""
    short = f"{function}({', '.join(arguments)})"
    if len(short) < 80:
        return short
    return f"{function}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def _csv_options(source: Source) -> list[str]:
    """What has to be said of a text file; types are found by looking at all of it."""
    separator = _separator(source.file)
    options = {
        f"separator={separator!r}": separator != ",",
        "has_header=False": "--no-header" in source.options,
        f"null_values={MISSING!r}": source.left_out > 0,
        "infer_schema_length=None": True,
    }
    return [option for option, wanted in options.items() if wanted]


def _separator(file: str) -> str:
    """The separator of a file, by its first line, or by its name where it cannot be read."""
    path = next(iter(sorted(glob.glob(file))), file)
    opened = gzip.open if path.endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8", errors="replace") as lines:
            return separator_of(next(iter(lines), ","))
    except OSError:
        return "\t" if ".tsv" in Path(file).suffixes else ","
