"""The public names, and the signatures that users write."""

import inspect
import re
import subprocess
import sys

import pytest

import jacridge
import known


def signature(function):
    parameters = inspect.signature(function).parameters.values()
    return [str(p.replace(annotation=inspect.Parameter.empty)) for p in parameters]


def kinds(function):
    return [p.kind.name for p in inspect.signature(function).parameters.values()]


def test_the_public_names_are_exactly_these():
    assert set(jacridge.__all__) == {
        "AutoKernelClassifier",
        "AutoKernelRidge",
        "Choice",
        "JacobianKernelClassifier",
        "JacobianKernelRidge",
        "JacobianNystroem",
        "RULES",
        "TrainingData",
        "__version__",
        "last_step",
        "select_bandwidth",
        "theory",
    }


def test_every_public_name_has_a_docstring():
    for name in jacridge.__all__:
        if name not in ("RULES", "__version__"):
            assert inspect.getdoc(getattr(jacridge, name)), name


def test_the_estimator_takes_these_parameters():
    assert signature(jacridge.JacobianKernelRidge) == [
        "bandwidth='jacobian'",
        "alpha=0.001",
        "kernel='gaussian'",
        "metric='euclidean'",
        "solver='auto'",
        "n_landmarks=None",
        "landmarks='kmeans'",
        "fit_intercept=True",
        "held_out='random'",
        "random_state=None",
        "verbose=0",
    ]
    assert kinds(jacridge.JacobianKernelRidge).count("KEYWORD_ONLY") == 9


def test_the_classifiers_take_those_of_the_regressors_and_weights_of_classes():
    for ours, theirs in (
        (jacridge.JacobianKernelClassifier, jacridge.JacobianKernelRidge),
        (jacridge.AutoKernelClassifier, jacridge.AutoKernelRidge),
    ):
        extra = [p for p in signature(ours) if p not in signature(theirs)]
        assert extra == ["class_weight=None"]
        assert [p for p in signature(ours) if p not in extra] == signature(theirs)


def test_the_estimator_s_methods_take_these_parameters():
    methods = {
        name: list(inspect.signature(getattr(jacridge.JacobianKernelRidge, name)).parameters)[1:]
        for name in ("fit", "predict", "jacobian", "effects", "contrast", "summary")
    }
    assert methods == {
        "fit": ["X", "y", "sample_weight"],
        "predict": ["X", "return_std"],
        "jacobian": ["X", "return_std"],
        "effects": ["X", "variables", "at", "kind", "by", "cluster", "robust", "level"],
        "contrast": ["X1", "X0", "cluster", "robust"],
        "summary": [],
    }


def test_select_bandwidth_takes_these_parameters():
    parameters = inspect.signature(jacridge.select_bandwidth).parameters.values()
    assert [(p.name, p.default) for p in parameters if p.default is not p.empty] == [
        ("y", None),
        ("rule", "jacobian"),
        ("alpha", 1e-3),
        ("kernel", "gaussian"),
        ("metric", "euclidean"),
        ("grid", None),
        ("random_state", None),
    ]
    assert kinds(jacridge.select_bandwidth).count("KEYWORD_ONLY") == 5


def test_a_choice_has_these_attributes():
    choice = jacridge.select_bandwidth([[0.0], [1.0], [3.0], [4.0]])
    names = ("sigma", "gamma", "rule", "alpha", "n", "p", "l_max", "spacing", "seconds")
    assert all(hasattr(choice, name) for name in names)
    assert float(choice) == choice.sigma


def test_these_rules_are_known():
    assert {
        "jacobian", "jacobian_median", "jacobian_lattice", "silverman", "scale", "median", "maxvar",
        "ssmm", "loo_without_y", "loo", "gcv", "mml", "jacobian_loo", "jacobian_mml",
    } <= set(jacridge.RULES)  # fmt: skip


@pytest.mark.parametrize("name", ["kernel", "metric", "solver", "held_out"])
def test_a_wrong_word_is_answered_with_the_words_that_tests_go_through(name):
    with pytest.raises(ValueError, match=f"`{name}` must be one of") as error:
        jacridge.JacobianKernelRidge(**{name: "magic"}).fit([[0.0], [1.0], [3.0]], [0, 1, 2])
    told = tuple(re.findall(r"'(\w+)'", str(error.value).split(", got ")[0]))
    assert (
        told
        == {
            "kernel": (*known.KERNELS, "auto"),
            "metric": known.METRICS,
            "solver": known.SOLVERS,
            "held_out": known.HELD_OUT,
        }[name]
    )


@pytest.mark.parametrize("kernel", known.KERNELS)
def test_the_smooth_kernels_are_those_with_a_jacobian_rule(kernel):
    X = [[0.0], [1.0], [3.0]]
    if kernel in known.SMOOTH:
        assert jacridge.select_bandwidth(X, kernel=kernel).sigma > 0
    else:
        with pytest.raises(ValueError, match="has no minimum"):
            jacridge.select_bandwidth(X, kernel=kernel)


def attributes_of(cls):
    """Attributes in a docstring, several to an entry or one, with the text of the entry."""
    section = re.split(
        r"\n[A-Z]\w+\n-+\n", inspect.getdoc(cls).split("Attributes\n----------\n")[1]
    )
    entries = re.findall(r"^(\S[^:\n]*?)(?: :[^\n]*)?\n((?:    .*\n?)*)", section[0], flags=re.M)
    return {name: text.strip() for names, text in entries for name in names.split(", ")}


@pytest.mark.parametrize("name", ["JacobianKernelRidge", "AutoKernelRidge", "JacobianNystroem"])
def test_every_public_fitted_attribute_is_documented(name, table):
    pd = pytest.importorskip("pandas")
    cls = getattr(jacridge, name)
    options = {"metric": "auto"} if name == "JacobianKernelRidge" else {}
    est = cls(random_state=0, **options).fit(
        pd.DataFrame(table[0], columns=["a", "b", "c"]), table[1]
    )
    made = {each for each in [*vars(est), *dir(cls)] if each.endswith("_") and each[0] != "_"}
    documented = attributes_of(cls)
    assert set(documented) == made
    assert all(documented.values())


def test_the_version_has_three_numbers():
    assert re.fullmatch(r"\d+\.\d+\.\d+", jacridge.__version__)


@pytest.mark.slow
def test_public_modules_are_there_after_one_import():
    """Each in a process of its own, where nothing else has imported them."""
    modules = ["datasets", "diagnostics", "effects", "onnx", "parquet", "plots", "report"]
    code = f"import jacridge; print([getattr(jacridge, name).__name__ for name in {modules}])"
    shown = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert shown.strip() == str([f"jacridge.{name}" for name in modules])
