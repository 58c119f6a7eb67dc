"""The `jacridge` command: parses, calls, prints."""

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated

from jacridge import __version__

try:
    import typer

    from . import _effects, _model, _paper, _rules
    from ._options import add_command
    from ._terminal import WrongUse, as_options, fail, note
except ImportError as error:
    sys.exit(f"The command needs `{error.name}`. Install it with: pip install 'jacridge[cli]'")
except KeyboardInterrupt:  # imports take seconds
    sys.stderr.write("Interrupted.\n")
    sys.exit(130)

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Kernel ridge regression that chooses kernel, metric, bandwidth and penalty.",
    epilog="First try: jacridge report your.csv --target your_column",
    context_settings={"help_option_names": ["-h", "--help"]},
)

EXAMPLES: dict[Callable[..., None], str] = {
    _rules.report: "report houses.csv --target price -o report.html",
    _model.fit: "fit houses.csv --target price -o model.skops",
    _model.predict: "predict model.skops new.csv -o out.csv --interval 0.9",
    _effects.effects: "effects houses.csv --target price --robust",
    _rules.compare: "compare houses.csv --target price --plot rules.png",
    _rules.select: "select houses.csv --target price --rule jacobian --json",
    _paper.paper: "paper fig1 table2 --quick -o out/paper",
}
for command, example in EXAMPLES.items():
    add_command(app, command, f"jacridge {example}")
app.add_typer(_paper.data_app, name="data")


def main(args: Sequence[str] | None = None) -> None:
    """Run the command; an error becomes one line on stderr and an exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: note(as_options(str(message)))
        try:
            app(args, prog_name="jacridge")
        except Exception as error:
            if os.environ.get("JACRIDGE_DEBUG"):
                raise
            fail(error, wrong_use=isinstance(error, WrongUse | FileNotFoundError))


@app.callback(invoke_without_command=True)
def version(
    asked: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Kernel ridge regression that chooses kernel, metric, bandwidth and penalty."""
    if asked:
        typer.echo(f"jacridge {__version__}")
        raise typer.Exit
