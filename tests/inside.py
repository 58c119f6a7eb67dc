"""Where tests find the private names that they look at beside public ones.

For formulas and messages that have no other way to be seen: `from inside import replaced`. A
private module that moves is changed here. Files that test one such module import it themselves.
"""

from importlib import import_module

NAMES = {
    "_compute.files": ["check_place", "replaced"],
    "_compute.progress": ["listening", "printer", "tell"],
    "_geometry.distances": ["EUCLIDEAN"],
    "_geometry.geodesics": ["geodesic_distances", "metres_per_degree"],
    "_geometry.kernels": ["CHUNK", "KERNELS"],
    "_geometry.space": ["METRICS", "Pairs", "space_of"],
    "_rows.labels": ["ArrayLabels", "ParquetLabels", "dask_labels"],
    "_rows.rows": ["ArrayRows"],
    "_rows.source": ["array_source"],
    "_rows.survey": ["Surveying"],
    "_rules.criteria": ["CRITERIA", "LOO", "Criterion"],
    "_rules.refits": ["groups_of"],
    "_rules.without_y": ["loo_without_y", "ssmm", "ssmm_line", "validation_rows"],
    "_solvers.influence": ["ExactInfluence", "even_noise"],
    "_solvers.sums": ["Summing"],
    "cli._columns": [
        "Reading",
        "UnknownColumn",
        "column_named",
        "in_place",
        "read_rows",
        "typed_columns",
    ],
    "cli._dates": ["CYCLES", "DAYS", "PARTS", "TIMES", "format_of"],
    "cli._model_file": [
        "ModelFileError",
        "SavedModel",
        "check_model_name",
        "load_model",
        "save_model",
    ],
    "cli._parts": ["Part", "_joined", "_moments", "fit_parts", "read_parts"],
    "cli._tables": ["WRITERS", "read_frame", "write_table"],
    "cli._terminal": ["WrongUse", "grid", "note", "progress", "show", "visible", "warn"],
    "cli._text": ["TableError"],
    "experiments._table": ["Harness", "Job", "largest", "write_rows"],
    "report._case": ["Case"],
    "report._columns": ["columns_prepared", "follows_time", "table_of"],
    "report._encoding": ["separator_of"],
    "report._folds": ["OURS", "TREES", "Folds", "_later", "folds_of"],
    "report._pieces": ["number", "share", "unrounded"],
    "report._tasks": ["ModelSpec"],
    "report._doubts": ["diagnosis", "doubts"],
}
MODULES = {
    "compare": "cli._compare",
    "dask_source": "_rows.dask",
    "exact": "_solvers.exact",
    "experiment_rules": "experiments._rules",
    "experiment_survey": "experiments._survey",
    "experiment_table": "experiments._table",
    "function": "_solvers.function",
    "intervals": "_solvers.intervals",
    "joint": "_rules.joint",
    "memory": "_compute.memory",
    "noise": "_solvers.noise",
    "parts_module": "cli._parts",
    "report_numbers": "report._numbers",
}


def __getattr__(name):
    """The name, or the module, imported when it is asked for: not all tests need all extras."""
    if name in MODULES:
        return import_module(f"jacridge.{MODULES[name]}")
    for place, names in NAMES.items():
        if name in names:
            return getattr(import_module(f"jacridge.{place}"), name)
    raise AttributeError(f"tests/inside.py does not name `{name}`.")
