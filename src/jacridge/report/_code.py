"""Code that a reader of the report can copy: the same model in jacridge and in scikit-learn."""

from __future__ import annotations

import glob
import gzip
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from .._compute.arrays import Array
from .._select import in_other_packages
from ._case import Case
from ._columns import COMMAS, GAPS_FILLED, TEXTS_READ, TITLES, UNREAD
from ._encoding import OLD_WINDOWS, encoding_of, separator_of, text_encoding
from ._pieces import joined, marked_up

LINE = 90  # characters of a line of code
GZIP = b"\x1f\x8b"  # the first bytes of a gzip file
# Suffixes of files that are not text, and the polars function that reads each.
POLARS_READERS = {
    ".parquet": "parquet",
    ".feather": "ipc",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".xlsx": "excel",
    ".xls": "excel",
}
ENCODER = 'OneHotEncoder(handle_unknown="ignore", sparse_output=False)'
# Names that the code may use, and where each comes from.
IMPORTS = {
    "np": "import numpy as np",
    "pl": "import polars as pl",
    **{name: f"import {name}" for name in ("csv", "gzip", "io")},
    "Path": "from pathlib import Path",
} | {
    name: f"from sklearn.{module} import {name}"
    for module, names in {
        "compose": ("TransformedTargetRegressor", "make_column_transformer"),
        "gaussian_process": ("GaussianProcessRegressor",),
        "gaussian_process.kernels": ("RBF", "Matern", "PairwiseKernel"),
        "kernel_approximation": ("Nystroem",),
        "linear_model": ("Ridge",),
        "pipeline": ("make_pipeline",),
        "preprocessing": ("FunctionTransformer", "OneHotEncoder", "StandardScaler"),
    }.items()
    for name in names
}
# Parts of a date without its time, as the command computes them.
PARTS_OF_DATES = {
    "year": "(date.dt.year() + (date.dt.ordinal_day() - 1) / 366)",
    **{
        f"{cycle} {wave}": f"(({count}) * 2 * np.pi / {period}).{function}()"
        for cycle, count, period in (
            (
                "month",
                "date.dt.month() - 1 + (date.dt.day() - 1) / date.dt.month_end().dt.day()",
                12,
            ),
            ("weekday", "date.dt.weekday() - 1", 7),
        )
        for wave, function in (("sine", "sin"), ("cosine", "cos"))
    },
}
NULL_WORDS = ["NA", "N/A", "NaN", "nan", "null", "NULL", "?"]


@dataclass(frozen=True)
class Origin:
    """Source of the rows: a file, the options for reading it, and the rows left out."""

    name: str
    options: tuple[str, ...] = ()
    left_out: int = 0
    losses: tuple[str, ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    formats: Mapping[str, str | None] = field(default_factory=dict)  # of dates that Python can read

    @property
    def file(self) -> str:
        """The file that code can read; a placeholder for standard input."""
        return "data.csv" if self.name == "-" else self.name

    def lost_many(self, n: int) -> bool:
        """Whether more than a fifth of all rows is left out, if n are kept."""
        return self.left_out > (n + self.left_out) / 5


def code_blocks(case: Case, source: Origin) -> str:
    """HTML of the blocks, each with a title; Python only if it can read the file as we did."""
    why = _beyond_python(case, source)
    in_python = {} if why else {"Python": python_code, "scikit-learn only": sklearn_code}
    if case.spec.distance == "geodesic":  # not supported by scikit-learn's kernels
        in_python.pop("scikit-learn only", None)
    blocks = {**in_python, "On the command line": command}
    note = (
        f"<p>There is no Python code to copy, because it would have to repeat {marked_up(why)}. "
        "The command does this, and its model file stores how.</p>"
    )
    return (note if why else "") + "".join(
        f'<div class="code"><h3>{title}</h3>'
        f'<pre tabindex="0"><code>{escape(write(case, source))}</code></pre></div>'
        for title, write in blocks.items()
    )


def _beyond_python(case: Case, source: Origin) -> str:
    """Steps of reading the table that a few lines of Python cannot repeat; empty if none."""
    dates = [name for name in _dates(case) if name not in source.formats]
    done = {
        f"how the dates in {', '.join(f'`{name}`' for name in dates)} became numbers": dates,
        "how decimal commas were read": "--decimal" in source.options,
        "how the header was found": any(name == TITLES for name, _ in source.remarks),
        "how gaps were filled": any(name == GAPS_FILLED for name, _ in source.remarks),
        "how text was read as numbers": any(
            name in (TEXTS_READ, UNREAD, COMMAS) for name, _ in source.remarks
        ),
        "how files that are not UTF-8 were joined": _has_old_parts(source.file),
    }
    parts = [what for what, is_so in done.items() if is_so]
    return joined(parts) if parts else ""


def _dates(case: Case) -> dict[str, list[str]]:
    """The columns of dates, and the names of the features made from each."""
    return {
        column.name: [case.table.names[place] for place in column.places]
        for column in case.columns
        if not column.levels and case.table.names[column.places[0]] != column.name
    }


def _reading_dates(case: Case, source: Origin) -> str:
    """Lines that turn dates into features."""
    lines = []
    for name, parts in _dates(case).items():
        form = source.formats[name]
        is_digits = form is not None and re.fullmatch("(%[a-zA-Z])+", form)
        text = ".cast(pl.String)" if is_digits else ""  # read as a whole number
        read = "" if form is None else f"{text}.str.to_datetime({form!r})"
        made = [f"    {PARTS_OF_DATES[p.rpartition('(')[2][:-1]]}.alias({p!r}),\n" for p in parts]
        lines.append(
            f"date = pl.col({name!r}){read}\ntable = table.with_columns(\n{''.join(made)})\n"
        )
    return "".join(lines)


def python_code(case: Case, source: Origin) -> str:
    """Code for a model that makes its choices again in the fit."""
    name = (case.task.automatic if case.spec.is_auto else case.task.plain).__name__
    made, prepared = f"{name}({_options(case)})", _preparing(case)
    steps = f"make_pipeline(\n{prepared}    {made},\n)" if prepared else made
    body = f"{_reading(case, source)}model = {steps}.fit(X, y)\n{_predicting(case)}"
    return f"{_imports(body)}\nfrom jacridge import {name}\n\n{body}"


def _predicting(case: Case) -> str:
    """The last lines: predictions, and probabilities of classes."""
    return ("model.predict_proba(X)\n" if case.classes else "") + "model.predict(X)\n"


def sklearn_code(case: Case, source: Origin) -> str:
    """Code for the model without jacridge: metric, kernel and penalty are written out."""
    mapping, step = _map(case)
    coded, predicting = _coding(case)
    body = (
        f"{_reading(case, source)}{coded}{mapping}"
        f"model = make_pipeline(\n{_preparing(case)}{step}{_sklearn_model(case)}"
        f").fit(X, {'Y' if coded else 'y'})\n{predicting}"
    )
    return f"{_imports(body)}\n{body}"


def _sklearn_model(case: Case) -> str:
    """Lines of the last step: the same solution, or one with the same number of landmarks."""
    if case.estimator.solver_ == "exact":
        return (
            "    GaussianProcessRegressor(  # its mean is kernel ridge regression\n"
            f"        {_kernel(case)}, alpha={case.lam!r}, optimizer=None, normalize_y=True\n"
            "    ),\n"
        )
    m = len(case.estimator.X_fit_)  # other landmarks: close, not equal
    return (
        f"    Nystroem(kernel={_kernel(case)}, n_components={m}, random_state=0),\n"
        "    TransformedTargetRegressor(  # centres y\n"
        f"        Ridge(alpha={case.lam!r}, fit_intercept=False),\n"
        "        transformer=StandardScaler(with_std=False),\n    ),\n"
    )


def _coding(case: Case) -> tuple[str, str]:
    """Lines that code classes as numbers, and lines that turn predictions into classes."""
    if not case.classes:
        return "", _predicting(case)
    est, two = case.estimator, len(case.classes) == 2
    offset = np.ravel(est.offset_).tolist()
    coded = "(y == classes[1]) * 1.0" if two else "(y[:, None] == classes) * 1.0"
    last = (
        "probability = 1 / (1 + np.exp(-odds))  # of the second class\nclasses[(odds > 0) * 1]"
        if two
        else "probability = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)\n"
        "classes[odds.argmax(axis=1)]"
    )
    return (
        f"classes = np.array({est.classes_.tolist()!r})\nY = {coded}  # one in rows of a class\n",
        f"scores = model.predict(X) - Y.mean(axis=0)\n"
        f"odds = {float(est.slope_)!r} * scores + {offset[0] if two else offset!r}\n{last}\n",
    )


def _kernel(case: Case) -> str:
    """The kernel as a kernel of scikit-learn's Gaussian processes."""
    return in_other_packages(case.estimator.kernel_, case.estimator.bandwidth_)["sklearn"]


def _map(case: Case) -> tuple[str, str]:
    """Lines that define the metric's map, and the step that applies it; empty without a map."""
    T, warp = case.estimator.metric_, case.estimator.warp_
    if warp is None and np.array_equal(T, np.eye(len(T))):
        return "", ""
    is_diagonal = (np.count_nonzero(T, axis=0) == 1).all() and (
        np.count_nonzero(T, axis=1) <= 1
    ).all()
    what = "the metric: a factor for each column" if is_diagonal else "the metric: a linear map"
    lines = _array("T", T.sum(axis=1) if is_diagonal else T, what)
    features, product = "np.asarray(X)", "* T" if is_diagonal else "@ T"
    if warp is not None:
        some = np.flatnonzero(np.isfinite(warp[1]))
        lines += _array("c", warp[0, some], "columns with heavy tails are compressed around c,")
        lines += _array("s", warp[1, some], "beyond a distance of s")
        lines += (
            "\n\ndef compressed(X):\n"
            f"    Z, heavy = np.array(X, dtype=float), {some.tolist()}\n"
            "    Z[:, heavy] = c + s * np.arcsinh((Z[:, heavy] - c) / s)\n"
            "    return Z\n\n\n"
        )
        features = "compressed(X)"
    return lines, f"    FunctionTransformer(lambda X: {features} {product}),\n"


def _array(name: str, values: Array, what: str) -> str:
    """Lines that define an array, with a comment."""
    text = np.array2string(
        values,
        separator=", ",
        threshold=values.size + 1,
        max_line_width=LINE,
        formatter={"float_kind": lambda v: f"{v:.10g}"},
    )
    return f"{name} = np.array(  # {what}\n    {text.replace(chr(10), chr(10) + '    ')}\n)\n"


def command(case: Case, source: Origin) -> str:
    """The commands that fit and use the model."""
    (bandwidth, alpha), spec = _given(case), case.spec
    chosen = case.lam if isinstance(alpha, list) else alpha  # the command takes no list
    given = {
        ("--rule", str(bandwidth)): not spec.is_auto,
        ("--alpha", str(chosen)): chosen != replace(spec, alpha=None).penalty,
        ("--kernel", spec.kernel): spec.kernel != "auto",
        ("--metric", spec.metric): spec.metric != "auto",
        ("--held-out", spec.held_out): spec.held_out != "auto",
        ("--no-standardize",): not spec.standardize,
    }
    options = [word for words, wanted in given.items() if wanted for word in words]
    words = ["--target", case.target, *source.options, *options]
    fit = shlex.join(["jacridge", "fit", source.file, *words])
    header = " --no-header" if "--no-header" in source.options else ""
    interval = "" if case.classes else " --interval 0.9"
    return (
        f"{fit} -o model.skops\njacridge predict model.skops new.csv{header} -o predictions.csv"
        f"{interval}\n{_with_all_rows(case, source, words)}"
    )


def _with_all_rows(case: Case, source: Origin, words: list[str]) -> str:
    """The command for a report that fills gaps, if many rows are left out because of gaps."""
    if not source.lost_many(len(case.y)):
        return ""
    filled = shlex.join(["jacridge", "report", source.file, *words, "--missing", "impute"])
    n = len(case.y) + source.left_out
    return f"# This page leaves out {source.left_out:,} of {n:,} rows. To use them all:\n{filled}\n"


def _imports(code: str) -> str:
    """Imports of the names in the code outside its strings, in the order of sorting tools."""
    bare = re.sub(r"""'[^'\n]*'|"[^"\n]*"|#.*""", "", code)
    used = [line for name, line in IMPORTS.items() if re.search(rf"\b{name}[.(]", bare)]
    return "".join(f"{line}\n" for line in sorted(used, key=lambda line: (line.split()[1], line)))


def _preparing(case: Case) -> str:
    """Lines of the pipeline before the model."""
    if not case.table.texts:
        return "    StandardScaler(),\n" if case.spec.scales else ""
    scaler = "StandardScaler()" if case.spec.scales else '"passthrough"'
    return (
        f"    make_column_transformer(\n        ({scaler}, {_names(case.table.numbers, 8)}),\n"
        f"        ({ENCODER}, {_names(case.table.texts, 8)}),\n    ),\n"
    )


def _given(case: Case) -> tuple[Any, Any]:
    """Bandwidth and penalty as asked for, as words, numbers or lists; a function by its value."""
    bandwidth = case.estimator.bandwidth_ if callable(case.spec.bandwidth) else case.spec.bandwidth
    return np.asarray(bandwidth).tolist(), np.asarray(case.spec.penalty).tolist()


def _options(case: Case) -> str:
    """Arguments of the estimator, without defaults of the automatic estimator."""
    (bandwidth, alpha), spec = _given(case), case.spec
    default = {"alpha": "auto", "kernel": "auto", "metric": "auto"}
    if not spec.is_auto:
        default = {"kernel": "gaussian", "metric": "euclidean"}
    given = {} if spec.is_auto or bandwidth == "jacobian" else {"bandwidth": bandwidth}
    given |= {"alpha": alpha, "kernel": spec.model_kernel, "metric": spec.model_metric}
    given |= {"held_out": "later"} if case.is_later else {}
    given["random_state"] = spec.random_state
    return ", ".join(f"{k}={v!r}" for k, v in given.items() if default.get(k, ...) != v)


def _reading(case: Case, source: Origin) -> str:
    """Lines that read the table and drop the rows that the report left out."""
    kind = POLARS_READERS.get(Path(source.file).suffix.lower(), "csv")
    text, file = _text(source.file) if kind == "csv" else "", repr(source.file)
    options = _csv_options(source) if kind == "csv" else _sheet(source)
    arguments = ", ".join(["io.StringIO(text)" if text else file, *options])
    complete = ".fill_nan(None).drop_nulls()" if source.left_out else ""
    oldest_first = ".reverse()" if case.order.step < 0 else ""
    names = ""
    if "--no-header" in source.options:
        names = 'table.columns = [f"column_{i + 1}" for i in range(table.width)]\n'
    elif text:  # quotes within names, and spaces around them
        header = f"csv.reader(io.StringIO(text), delimiter={_separator(source.file)!r})"
        names = f"table.columns = [name.strip() for name in next({header})]\n"
    return (
        f"columns = {_names(case.table.numbers + case.table.texts)}\n"
        f"{text}table = pl.read_{kind}({arguments})\n"
        f"{names}{_reading_dates(case, source)}"
        f"table = table.select([*columns, {case.target!r}]){complete}{oldest_first}\n"
        f"X, y = table[columns], table[{case.target!r}].to_numpy()\n"
    )


def _names(names: Sequence[str], indent: int = 0) -> str:
    """A list of names, on several lines if it is long."""
    if len(repr(names)) <= LINE - 2 * indent:
        return repr(list(names))
    lines, margin = [""], " " * indent
    for name in names:
        if indent + len(lines[-1]) + len(repr(name)) > LINE:
            lines.append("")
        lines[-1] += f" {name!r},"
    return "[\n" + "".join(f"{margin}   {line}\n" for line in lines) + f"{margin}]"


def _has_old_parts(pattern: str) -> bool:
    """Whether several files are read at once, and not all of them are UTF-8."""
    one = Path(pattern).exists() or Path(pattern).suffix.lower() in POLARS_READERS
    several = [] if one else glob.glob(pattern)
    return any(text_encoding(Path(part).read_bytes()) == OLD_WINDOWS for part in several)


def _text(file: str) -> str:
    """Lines that read text for polars: not UTF-8, with blank lines, or with quoted names."""
    try:
        data = Path(file).read_bytes()
        packed = data.startswith(GZIP)
        data = gzip.decompress(data) if packed else data
    except OSError:
        return ""
    encoding, header = text_encoding(data), data.split(b"\n", 1)[0]
    is_plain = encoding.startswith("utf-8") and b"\n" in data and b'"' not in header
    if is_plain and not re.search(rb"^\s*\n", data, re.M):
        return ""
    opened = f"gzip.open({file!r}, 'rt', encoding={encoding!r}).read()"
    plain = f"Path({file!r}).read_text({encoding!r})"
    return (
        f"text = {opened if packed else plain}\n"
        'text = "\\n".join(line for line in text.split("\\n") if line.strip())\n'
    )


def _csv_options(source: Origin) -> list[str]:
    """Options for reading a text file; types are inferred from the whole file."""
    separator = _separator(source.file)
    options = {
        f"separator={separator!r}": separator != ",",
        "has_header=False": "--no-header" in source.options,
        f"null_values={NULL_WORDS!r}": source.left_out > 0,
        "infer_schema_length=None": True,
    }
    return [option for option, wanted in options.items() if wanted]


def _sheet(source: Origin) -> list[str]:
    """The option that names the sheet of a workbook, if one was asked for."""
    words = source.options
    wanted = [words[i + 1] for i, word in enumerate(words) if word == "--sheet"]
    return [f"sheet_id={name}" if name.isdecimal() else f"sheet_name={name!r}" for name in wanted]


def _separator(file: str) -> str:
    """The separator of a file, from its first line, or from its name if it cannot be read."""
    path = next(iter(sorted(glob.glob(file))), file)
    opened = gzip.open if path.endswith(".gz") else open
    try:
        with opened(path, "rb") as lines:
            start = lines.read(1 << 16)
        text = start.decode(encoding_of(start), errors="replace")
        return separator_of(next(iter(text.strip().splitlines()), ","))
    except OSError:
        return "\t" if ".tsv" in Path(file).suffixes else ","
