"""Code that a reader of the report can copy: the same model in jacridge and in scikit-learn."""

from __future__ import annotations

import shlex
from html import escape
from pathlib import Path

from ._case import Case

ENCODER = 'OneHotEncoder(handle_unknown="ignore", sparse_output=False)'


def code_blocks(case: Case, source: str) -> str:
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


def python_code(case: Case, source: str) -> str:
    """A model that chooses its bandwidth again when it is fitted."""
    imports = {"import pandas as pd", *_imports(case)}
    return (
        f"{_lines(imports)}\nfrom jacridge import JacobianKernelRidge\n\n{_reading(case, source)}"
        f"model = make_pipeline(\n{_preparing(case)}    JacobianKernelRidge({_options(case)}),\n"
        ").fit(X, y)\nmodel.predict(X)\n"
    )


def sklearn_code(case: Case, source: str) -> str:
    """The same model without jacridge, the bandwidth written out as gamma."""
    gamma, lam = float(0.5 / case.estimator.bandwidth_**2), case.lam
    imports = {
        "import pandas as pd",
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


def _options(case: Case) -> str:
    """Arguments that differ from the defaults."""
    bandwidth = case.bandwidth
    if callable(bandwidth):
        bandwidth = float(case.estimator.bandwidth_)
    parts = [] if bandwidth == "jacobian" else [f"bandwidth={bandwidth!r}"]
    return ", ".join([*parts, f"alpha={case.alpha!r}"])


def _reading(case: Case, source: str) -> str:
    """Lines that read the table."""
    kinds = {".parquet": "parquet", ".feather": "feather", ".arrow": "feather"}
    kind = kinds.get(Path(source).suffix, "csv")
    tabs = ', sep="\\t"' if ".tsv" in Path(source).suffixes else ""
    columns = case.table.numbers + case.table.texts
    return (
        f"table = pd.read_{kind}({source!r}{tabs}).dropna()\n"
        f"X, y = table[{columns!r}], table[{case.target!r}]\n"
    )
