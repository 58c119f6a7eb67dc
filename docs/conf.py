"""Sphinx configuration: built offline, with warnings as errors, by `make docs`."""

import sys
from pathlib import Path

import matplotlib
from sklearn.datasets import load_diabetes
from sphinx_gallery.sorting import ExplicitOrder

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent / "src"))
matplotlib.use("Agg")

import jacridge  # noqa: E402
from jacridge.report import write_report  # noqa: E402

project = "jacridge"
author = "The jacridge developers"
copyright = author
version = release = jacridge.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "layers",
    "measured",
    "reproduced",
    "results",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",
]
exclude_patterns = [
    "_build",
    "gallery/*.ipynb",
    "gallery/*.py",
    "gallery/*.md5",
    "sg_execution_times.rst",
]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nitpicky = False

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "jacridge"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["jacridge.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_nav_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "search_as_you_type": True,
}
# Pages have a table of contents on the right; only the API and the gallery have pages below them.
html_sidebars = {path.stem: [] for path in HERE.glob("*.md")}


def write_sample_report(app, exception):
    """Write the report of the diabetes data beside the pages."""
    if exception is not None or app.builder.name != "html":
        return
    data = load_diabetes(scaled=False)
    options = {"target": "disease progression", "source": "diabetes.csv"}
    path = Path(app.outdir) / "sample_report.html"
    write_report(path, data.data, data.target, features=data.feature_names, **options)


def setup(app):
    app.connect("build-finished", write_sample_report)


ORDER = [
    "plot_overview.py",
    "plot_learned_metric.py",
    "plot_effects.py",
    "plot_one_feature.py",
    "plot_surface.py",
    "plot_norms.py",
    "plot_tuning.py",
    "plot_later_rows.py",
    "plot_trust.py",
    "plot_outliers.py",
    "plot_derivatives.py",
    "plot_intervals.py",
    "plot_svr_gamma.py",
    "plot_classifier.py",
    "plot_large_n.py",
    "plot_dask.py",
]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": ExplicitOrder([*ORDER, "*"]),
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1000,
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"matplotlib|jacridge\.plots",
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
    "write_computation_times": False,
}
