"""Data flows one way: what each file may import, and what `import jacridge` may load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "jacridge"
FILES = sorted(ROOT.rglob("*.py"))

SOLVERS = {"_bandwidth", "_cholesky", "_distances", "_kernels", "_nystrom", "_solvers", "_spectrum"}
SCALE = {"_landmarks", "_streams", "_nystrom", "_pcg", "_survey", "_sampled", "_dask"}
CORE = SOLVERS | {"theory", "_geometry", "_problem", "_search", "_auto", "_selectors", "_dask"}
# The public names of `jacridge` itself, and what stands beside them.
DOORS = {"jacridge", "theory", "plots", "datasets", "diagnostics"}

# Room -> rooms it may import from; `_checks` is open to all.
MAY_IMPORT = {
    "_checks": set(),
    "_distances": set(),
    "theory": set(),
    "_cholesky": set(),
    "_solvers": {"_cholesky"},
    "_spectrum": set(),
    "_bandwidth": {"theory"},
    "_geometry": {"_distances"},
    "_kernels": {"_distances"},
    "_progress": set(),
    "_landmarks": {"_cholesky", "_distances", "_kernels"},
    "_streams": {"_distances", "_progress"},
    "parquet": {"_distances", "_progress", "_streams"},
    "_sums": {"_distances", "_landmarks", "_streams"},
    "_nystrom_model": {"_cholesky", "_distances", "_landmarks", "_solvers", "_streams", "_sums"},
    "_nystrom": {"_cholesky", "_distances", "_landmarks", "_nystrom_model", "_problem", "_solvers"}
    | {"_sampled", "_streams", "_sums", "_survey"},
    "_survey": {"_distances", "_problem", "_streams"},
    "_sampled": {"_distances", "_geometry", "_problem", "_streams", "_survey"},
    "_pcg": {"_cholesky", "_distances", "_kernels", "_landmarks", "_progress", "_streams"},
    "_dask": {"_distances", "_progress", "_streams"},
    "_search": SOLVERS,
    "_problem": {"_distances", "_geometry", "theory", "_kernels", "_spectrum"},
    "_auto": {"_distances", "_problem", "_search", "_solvers"},
    "_selectors": {"_auto", "_problem", "_bandwidth", "_search"},
    "_choice": {"_selectors", "_problem", "_dask", "_distances", "_nystrom", "parquet"}
    | {"_streams", "_survey"},
    "_fitting": CORE | SCALE,
    "_estimator": {"_dask", "_distances", "_fitting", "_kernels", "_progress", "parquet"}
    | {"diagnostics"},
    "_features": {"_choice", "_landmarks", "_selectors"},
    "__init__": CORE | {"_choice", "_estimator", "_features"},
    "_curves": {"_distances", "_kernels", "_spectrum"},
    "plots": {"jacridge", "theory", "_curves"},
    "_downloads": set(),
    "datasets": {"_downloads"},
    "diagnostics": {"theory", "_geometry", "_problem", "_search"},
    "_files": set(),
    "report": DOORS | {"_curves", "_files"},
    "onnx": {"jacridge"},
    "experiments": DOORS | {"_files", "_distances", "_geometry", "_kernels", "_search"},
    # The last two for the words that options take: solvers, and ways to choose the penalty.
    "cli": DOORS | {"report", "experiments", "_files", "_progress", "_fitting", "_selectors"},
}


def room_of(path):
    """The first name below `jacridge`: a file, or a folder with all that is in it."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def is_room(name):
    return name != "" and ((ROOT / f"{name}.py").exists() or (ROOT / name / "__init__.py").exists())


def imported(path):
    """Every (module, name) that a file imports, with relative modules made absolute."""
    package = ["jacridge", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join(base + ([node.module] if node.module else []))
            yield from ((module, alias.name) for alias in node.names)


def rooms_imported(path):
    for module, name in imported(path):
        first, *rest = module.split(".")
        if first == "jacridge":
            inner = rest[0] if rest else name
            yield inner if is_room(inner) else "jacridge"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_from_the_rooms_below_it(path):
    room = room_of(path)
    assert room in MAY_IMPORT, f"{room} is new: give it a row in MAY_IMPORT"
    extra = set(rooms_imported(path)) - MAY_IMPORT[room] - {"_checks", room}
    assert not extra, f"{room} may not import {sorted(extra)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_private_of_scikit_learn_is_imported(path):
    for module, name in imported(path):
        if module.split(".")[0] == "sklearn":
            parts = [*module.split("."), name]
            assert not any(part.startswith("_") for part in parts), f"{module}.{name}"


def test_the_rules_of_import_have_no_circle():
    done, left = {"jacridge"}, dict(MAY_IMPORT)
    while ready := {room for room, below in left.items() if below <= done}:
        done |= ready
        left = {room: below for room, below in left.items() if room not in ready}
    assert not left


@pytest.mark.slow
def test_importing_jacridge_loads_no_extra():
    extras = {"matplotlib", "dask", "distributed", "pandas", "polars", "plotly", "typer", "rich"}
    # scikit-learn loads pandas and rich where they are installed: only what we add counts.
    code = (
        "import sklearn.neighbors, sys; before = set(sys.modules); import jacridge;"
        "print(*{m.split('.')[0] for m in set(sys.modules) - before})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not extras & set(run.stdout.split())
