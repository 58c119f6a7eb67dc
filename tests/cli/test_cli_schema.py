"""The JSON that commands print is what docs/command.schema.json says."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from jacridge.cli import app, main

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "command.schema.json").read_text())
KINDS = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def check(value, schema, where):
    """As much of JSON Schema as the file uses."""
    if "$ref" in schema:
        check(value, SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], where)
    if "enum" in schema:
        assert value in schema["enum"], where
    if "type" in schema:
        names = np.atleast_1d(schema["type"])
        assert any(isinstance(value, KINDS[name]) for name in names), (where, value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        assert set(schema.get("required", ())) <= set(value), where
        assert (
            "additionalProperties" in schema
            or "properties" not in schema
            or (set(value) <= set(known))
        ), (where, set(value) - set(known))
        for key, part in value.items():
            check(part, known.get(key, schema.get("additionalProperties", {})), f"{where}.{key}")
    if isinstance(value, list):
        for part in value:
            check(part, schema.get("items", {}), f"{where}[]")


@pytest.fixture
def printed(capsys, tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 40))
    frame = {"a": a, "b": b, "y": a + 0.1 * b, "kind": np.where(a + b > 0, "up", "down")}
    pl.DataFrame(frame).write_csv(tmp_path / "t.csv")

    def call(*args):
        words = [str(tmp_path / arg[1:]) if arg.startswith("@") else arg for arg in args]
        with pytest.raises(SystemExit) as end:
            main([*words, "--json"])
        found = capsys.readouterr()
        assert not end.value.code, found.err
        return json.loads(found.out)

    return call


NUMBERS = ("@t.csv", "-t", "y", "--features", "a,b")
CLASSES = ("@t.csv", "-t", "kind", "--features", "a,b", "--rule", "scale")


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("select", NUMBERS),
        ("select", ("@t.csv", "--features", "a,b")),
        ("compare", (*NUMBERS, "--rules", "scale,linear", "--splits", "1")),
        ("compare", (*CLASSES[:5], "--rules", "scale,trees", "--splits", "1")),
        ("fit", (*NUMBERS, "--rule", "scale", "-o", "@m.skops")),
        ("fit", ("@t.csv", "-t", "y,b", "--features", "a", "--rule", "scale", "-o", "@m.skops")),
        ("fit", (*CLASSES, "-o", "@m.skops")),
        ("effects", (*NUMBERS, "--rule", "scale")),
        ("effects", CLASSES),
        ("effects", (*NUMBERS, "--rule", "scale", "--cluster", "kind", "-o", "@e.csv")),
        ("report", (*CLASSES, "-o", "@r.html")),
        ("report", (*NUMBERS, "--rule", "scale", "-o", "@r.html")),
        ("data list", ()),
        ("data path", ()),
    ],
)
def test_a_command_prints_what_the_schema_says(printed, command, args):
    check(printed(*command.split(), *args), SCHEMA["$defs"][command], command)


@pytest.mark.parametrize("fitted", [(*NUMBERS, "--rule", "scale"), CLASSES])
def test_predictions_are_what_the_schema_says(printed, fitted):
    printed("fit", *fitted, "-o", "@m.skops")
    for rest in ((), ("-o", "@p.csv")):
        found = printed("predict", "@m.skops", "@t.csv", *rest)
        check(found, SCHEMA["$defs"]["predict"], "predict")


def test_the_json_of_a_report_has_the_scores_and_findings_of_its_page(printed, tmp_path):
    found = printed("report", *NUMBERS, "--rule", "2", "-o", "@r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    ours = found["models"][0]
    assert (ours["model"], found["judged_on"]) == ("this model", "rows kept aside")
    assert f"<b>R² = {ours['r2']:.2f}</b>" in page
    assert [row["model"] for row in found["models"]] == [
        "this model",
        "boosted trees",
        "linear model",
    ]
    assert {"leave-one-out R2", "equal rows"} <= {row["name"] for row in found["findings"]}


def test_every_command_has_a_schema():
    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    for group in app.registered_groups:
        names |= {
            f"{group.name} {command.name or command.callback.__name__}"
            for command in group.typer_instance.registered_commands
        }
    assert names <= set(SCHEMA["$defs"])
