"""What the command prints: tables, progress without a terminal, nothing that a terminal obeys."""

import os
import subprocess
import sys
import threading
import time

import pytest

from inside import grid, note, progress, show, visible, warn
from jacridge.cli import main
from jacridge.effects import Effect, Effects


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\rb\x07", r"a\rb\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("user\u202egnp.exe", r"user\u202egnp.exe"),
        ("Länge in µm, 長さ", "Länge in µm, 長さ"),
    ],
)
def test_control_characters_are_shown_escaped(text, shown):
    assert visible(text) == shown


def test_notes_warnings_and_results_are_one_line_and_escaped(capsys):
    for say in (note, warn, lambda text: show({"target": text}, as_json=False)):
        say("a\n\x1b[2Jb")
        out, err = capsys.readouterr()
        assert (out + err).count("\n") == 1
        assert r"a\n\x1b[2Jb" in out + err


def test_an_escape_sequence_in_a_column_name_does_not_reach_the_terminal(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("\x1b[31mx,y\n1,2\n")
    with pytest.raises(SystemExit):
        main(["select", str(tmp_path / "t.csv"), "-t", "z"])
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert r"`\x1b[31mx`" in err


def test_data_for_programs_is_not_escaped(capsys):
    show({}, as_json=False, text="a\tb\x07")
    assert capsys.readouterr().out == "a\tb\x07\n"


def test_a_table_has_its_first_column_to_the_left_and_no_markup():
    text = grid(["rule", "sigma"], [["[red]long name[/red]", 1.5], ["a", 0.123456]])
    assert text.splitlines() == [
        "rule                   sigma",
        "[red]long name[/red]     1.5",
        "a                     0.1235",
    ]


def test_a_long_path_is_not_wrapped(capsys):
    path = "folder/" * 60 + "model.skops"
    show({"model": path}, as_json=False)
    assert capsys.readouterr().out == f"model  {path}\n"


@pytest.fixture
def impatient(size):
    size("seconds to a first line", 0.05)
    size("seconds between lines", 0.05)


@pytest.mark.usefixtures("impatient")
def test_long_work_is_told_of_where_there_is_no_terminal(capsys):
    with progress("drawing the page"):
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("[jacridge] drawing the page, ") for line in lines)


@pytest.mark.usefixtures("impatient")
def test_a_line_says_how_far_the_work_is(capsys):
    with progress("fitting") as move:
        move(3, 7, "pass over the rows")
        time.sleep(0.2)
    assert "[jacridge] pass over the rows: 3 of 7, 0 s\n" in capsys.readouterr().err


def test_short_work_prints_nothing_and_leaves_no_thread(capsys):
    before = threading.active_count()
    with progress("drawing"), progress("fitting"):
        pass
    assert capsys.readouterr().err == ""
    assert threading.active_count() == before


@pytest.mark.parametrize("command", ["", "data"])
def test_summaries_of_commands_are_not_cut(capsys, command):
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    assert "..." not in capsys.readouterr().out.split("Commands:")[1]


@pytest.mark.slow
@pytest.mark.parametrize("module", ["scipy", "sklearn", "polars"])
def test_an_interrupt_of_the_command_while_it_is_imported_is_one_line(tmp_path, module):
    command = tmp_path / "jacridge"
    command.write_text(
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\nfrom jacridge.cli import main\n"
    )
    done = subprocess.run(
        [sys.executable, command], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.stderr == "Interrupted.\n"
    assert done.returncode in (130, -2)  # a shell takes the signal for 130


@pytest.mark.slow
def test_an_interrupt_during_imports_is_one_line():
    """The import of polars, which takes a while, is where the interrupt comes."""
    code = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'polars': raise KeyboardInterrupt\n"
        "import jacridge\nsys.modules.pop('polars', None)\n"
        "sys.meta_path.insert(0, Interrupt())\nimport jacridge.cli\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ
    )
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


def test_all_numbers_of_a_table_have_separated_thousands():
    """7,770 stood as 7770 beside 37,700; Python printed 4.225e+04."""
    assert grid(["n", "x"], [["a", 7770.4], ["b", 37700.0], ["c", 0.5]]).split()[3::2] == [
        "7,770",
        "37,700",
        "0.5",
    ]
    row = Effect(None, None, "size", "dY/dX", "slope", 42250.4, *[7770.4] * 8)
    assert "42,250" in str(Effects((row,), 0.95, "even"))
    assert "7,770" in str(Effects((row,), 0.95, "even"))
