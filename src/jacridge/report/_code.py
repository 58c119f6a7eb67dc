"""Code that a reader of the report can copy: the same model in jacridge and in scikit-learn."""

from __future__ import annotations

import shlex
from html import escape
from pathlib import Path

from ._case import Case


def code_blocks(case: Case, source: str, columns: list[str], categories: list[str]) -> str:
    """HTML of the blocks, each with a title."""
    blocks = {
        "Python": python_code(case, source, columns, categories),
        "scikit-learn only": sklearn_code(case, source, columns, categories),
        "On the command line": command(case, source),
        "In other packages": elsewhere(case.estimator.bandwidth_),
    }
    return "".join(
        f'<div class="code"><h3>{title}</h3>'
        f'<pre tabindex="0"><code>{escape(text)}</code></pre></div>'
        for title, text in blocks.items()
    )


def python_code(case: Case, source: str, columns: list[str], categories: list[str]) -> str:
    """A model that chooses its bandwidth again when it is fitted."""
    options = _options(case)
    head = (
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import StandardScaler\n\n"
    )
    model = f"JacobianKernelRidge({options})"
    if case.standardize:
        model = f"make_pipeline(StandardScaler(), {model})"
    return (
        f"import pandas as pd\n{head if case.standardize else ''}"
        f"from jacridge import JacobianKernelRidge\n\n{_reading(case, source, columns, categories)}"
        f"model = {model}.fit(X, y)\n"
        "model.predict(X)\n"
    )


def sklearn_code(case: Case, source: str, columns: list[str], categories: list[str]) -> str:
    """The same predictions without jacridge, the bandwidth written out as gamma."""
    scaler = "    StandardScaler(),\n" if case.standardize else ""
    gamma = 0.5 / case.estimator.bandwidth_**2
    return (
        "import pandas as pd\n"
        "from sklearn.compose import TransformedTargetRegressor\n"
        "from sklearn.kernel_ridge import KernelRidge\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import StandardScaler\n\n"
        f"{_reading(case, source, columns, categories)}"
        f"model = make_pipeline(\n{scaler}"
        "    TransformedTargetRegressor(  # KernelRidge has no intercept\n"
        f'        KernelRidge(kernel="rbf", gamma={gamma!r}, alpha={case.lam!r}),\n'
        "        transformer=StandardScaler(with_std=False),\n"
        "    ),\n"
        ").fit(X, y)\n"
        "model.predict(X)\n"
    )


def command(case: Case, source: str) -> str:
    """The same with the command."""
    rule = [] if case.bandwidth == "jacobian" else ["--rule", str(case.bandwidth)]
    alpha = [] if case.alpha == 1e-3 else ["--alpha", str(case.alpha)]
    scale = [] if case.standardize else ["--no-standardize"]
    options = [*rule, *alpha, *scale]
    fit = shlex.join(["jacridge", "fit", source, "--target", case.target, *options])
    return (
        f"{fit} -o model.skops\njacridge predict model.skops new.csv -o predictions.csv "
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


def _options(case: Case) -> str:
    """Arguments that differ from the defaults."""
    bandwidth = case.bandwidth
    if callable(bandwidth):
        bandwidth = float(case.estimator.bandwidth_)
    parts = [] if bandwidth == "jacobian" else [f"bandwidth={bandwidth!r}"]
    return ", ".join([*parts, f"alpha={case.alpha!r}"])


def _reading(case: Case, source: str, columns: list[str], categories: list[str]) -> str:
    """Lines that read the table."""
    kind = "parquet" if Path(source).suffix == ".parquet" else "csv"
    tabs = ', sep="\\t"' if ".tsv" in Path(source).suffixes else ""
    dummies = f"X = pd.get_dummies(X, columns={categories!r}, dtype=float)\n" if categories else ""
    return (
        f"table = pd.read_{kind}({source!r}{tabs}).dropna()\n"
        f"X, y = table[{columns!r}], table[{case.target!r}]\n{dummies}"
    )
