"""The commands `data` and `paper`: the paper's data sets, and its experiments."""

from typing import Annotated

import typer

from jacridge import datasets

from ._options import AsJson, add_command, one_of, option
from ._terminal import progress, show

data_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List, download and find the data sets of the paper.",
    epilog="Example: jacridge data fetch wood_fibres",
)


def list_data(as_json: AsJson = False) -> None:
    """Print the data sets, with their licences and citations."""
    rows = datasets.list_datasets()
    text = "\n\n".join(
        f"{row['name']}: {row['n']} rows, {row['p']} features, target {row['target']}\n"
        f"  licence: {row['licence']}\n  cite: {row['citation']}\n  from: {row['source']}"
        for row in rows
    )
    show({"data_sets": rows}, as_json=as_json, text=text)


def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Data sets, or all.")],
    as_json: AsJson = False,
) -> None:
    """Download data sets that are missing here, check them, and print where they are."""
    known = [str(row["name"]) for row in datasets.list_datasets()]
    for name in names:
        one_of(name, (*known, "all"), "NAME")
    wanted = known if "all" in names else names
    paths = {name: str(datasets.fetch(name)) for name in wanted}
    show({"files": paths}, as_json=as_json, text="\n".join(paths.values()))


def path(as_json: AsJson = False) -> None:
    """Print the folder that is searched first for data sets."""
    folder = str(datasets.folder())
    show({"folder": folder}, as_json=as_json, text=folder)


add_command(data_app, list_data, "jacridge data list --json", name="list")
add_command(data_app, fetch, "jacridge data fetch wood_fibres protein")
add_command(data_app, path, "export JACRIDGE_DATA=$(jacridge data path)")


def known_experiments() -> list[str]:
    """Names of experiments and of groups; their modules are slow to import."""
    from jacridge.experiments import EXPERIMENTS, GROUPS

    return [*EXPERIMENTS, *GROUPS]


def paper(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="fig1 to fig7, table2, beyond (further experiments), or all.",
            autocompletion=known_experiments,
        ),
    ],
    output: Annotated[str, option("--output -o", "FOLDER", "Output folder.")] = "out/paper",
    splits: Annotated[
        int | None,
        option("--splits", "NUMBER", "Splits or seeds.", min=1, show_default="as in the paper"),
    ] = None,
    jobs: Annotated[int, option("--jobs", "NUMBER", "Processes.", min=1)] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer splits and rows.")] = False,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Only redraw the results of earlier runs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Rerun the paper's figures and tables, and print the names of the files.

    A run that was interrupted continues where it stopped.
    """
    from jacridge.experiments import GROUPS, draw_experiment, run_experiment

    for name in names:
        one_of(name, known_experiments(), "NAME")
    files = []
    with progress() as move:
        for name in [each for asked in names for each in GROUPS.get(asked, (asked,))]:
            files += (
                draw_experiment(name, output)
                if redraw
                else run_experiment(name, output, splits, jobs, quick, move)
            )
    paths = [str(path) for path in files]
    show({"files": paths}, as_json=as_json, text="\n".join(paths))
