"""Layers: each folder imports only from those before it, and `import jacridge` loads no extra."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "jacridge"
FILES = sorted(ROOT.rglob("*.py"))

# Each layer may import from the layers in the lines above its own.
LAYERS = [
    ["_compute"],
    ["_checks"],
    ["_geometry"],
    ["theory"],
    ["_rows"],
    ["_solvers", "parquet"],
    ["_rules"],
    ["diagnostics"],
    ["effects"],
    ["_estimator", "_select"],
    ["_classifier", "_transformer"],
    ["_pipeline"],
    ["__init__"],
    ["datasets", "onnx", "plots"],
    ["report", "experiments"],
    ["cli"],
    ["__main__"],
]
LEVEL = {layer: level for level, line in enumerate(LAYERS) for layer in line}


def layer_of(path):
    """The first name below `jacridge`: a file, or a folder with all that is in it."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def is_layer(name):
    return (ROOT / f"{name}.py").exists() or (ROOT / name / "__init__.py").exists()


@cache
def imported(path):
    """Every (module, name) that a file imports, with relative modules made absolute."""
    return list(_imported(path, ast.walk(ast.parse(path.read_text(encoding="utf-8")))))


def _imported(path, nodes):
    package = ["jacridge", *path.relative_to(ROOT).parts[:-1]]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join(base + ([node.module] if node.module else []))
            yield from ((module, alias.name) for alias in node.names)


def layers_imported(path):
    for module, name in imported(path):
        first, *rest = module.split(".")
        if first == "jacridge":
            inner = rest[0] if rest else name
            yield inner if inner and is_layer(inner) else "__init__"


@pytest.mark.parametrize("layer", LEVEL)
def test_a_layer_imports_only_from_the_layers_before_its_own(layer):
    for path in FILES:
        if layer_of(path) == layer:
            names = set(layers_imported(path)) - {layer}
            upward = {name for name in names if LEVEL[name] >= LEVEL[layer]}
            assert not upward, f"{path} may not import {sorted(upward)}"


def test_every_file_is_in_a_layer():
    new = {layer_of(path) for path in FILES} - set(LEVEL)
    assert not new, f"{sorted(new)} is new: give it a place in LAYERS"


def test_within_a_folder_no_files_import_each_other_in_a_circle():
    for folder in (ROOT / name for name in LEVEL if (ROOT / name).is_dir()):
        left = {
            path.stem: {
                module.split(".")[2] if module.count(".") > 1 else name
                for module, name in imported(path)
                if module.startswith(f"jacridge.{folder.name}")
            }
            & {other.stem for other in folder.glob("*.py")} - {path.stem, "__init__"}
            for path in folder.glob("*.py")
            if path.stem != "__init__"
        }
        while ready := {name for name, needs in left.items() if not needs & set(left)}:
            left = {name: needs for name, needs in left.items() if name not in ready}
        assert not left, f"{folder.name}: {sorted(left)}"


@cache
def loaded(path):
    """Files that importing a file loads itself: no import within a function or for types alone."""
    found, body = set(), ast.parse(path.read_text(encoding="utf-8")).body
    tried = [node for part in body if isinstance(part, ast.Try) for node in part.body]
    for module, name in _imported(path, body + tried):
        first, *rest = module.split(".")
        for parts in ([*rest, name], rest):
            places = [ROOT.joinpath(*parts[:-1], f"{part}.py") for part in parts[-1:]]
            places.append(ROOT.joinpath(*parts, "__init__.py"))
            if first == "jacridge" and (file := next(filter(Path.exists, places), None)):
                found.add(file)
                break
    return found - {path}


@cache
def longest_chain(path, *, beyond_public):
    """Names of the files in the longest chain of imports; `jacridge` itself may be its end."""
    public = path == ROOT / "__init__.py" and not beyond_public
    chains = [longest_chain(file, beyond_public=beyond_public) for file in loaded(path)]
    return [] if public else [path.stem, *max(chains, key=len, default=[])]


@pytest.mark.parametrize(("beyond_public", "most"), [(False, 11), (True, 15)])
def test_no_chain_of_imports_from_the_command_is_long(beyond_public, most):
    """Through private files alone, and through the public names in `jacridge/__init__.py`."""
    chain = longest_chain(ROOT / "cli" / "__init__.py", beyond_public=beyond_public)
    assert len(chain) <= most, chain


def test_nothing_private_of_scikit_learn_is_imported():
    for path in FILES:
        for module, name in imported(path):
            if module.split(".")[0] == "sklearn":
                parts = [*module.split("."), name]
                assert not any(part.startswith("_") for part in parts), f"{path}: {module}.{name}"


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


def named_in(path):
    """Names of the classes and constants that a file defines at its top level."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        inner = [part for target in targets if target for part in ast.walk(target)]
        names = [part.id for part in inner if isinstance(part, ast.Name)]
        names += [node.name] if isinstance(node, ast.ClassDef) else []
        yield from (name for name in names if name[0].isupper())


def test_no_two_classes_or_constants_of_the_library_share_a_name():
    """Experiments and the command have settings of their own, such as RULES_RUN."""
    places = {}
    for path in FILES:
        if layer_of(path) not in ("experiments", "cli"):
            for name in named_in(path):
                places.setdefault(name, []).append(path.name)
    shared = {name: files for name, files in places.items() if len(files) > 1}
    assert not shared, shared
