"""Memory that is there, and what is said where it is not."""

import psutil
import pytest

from inside import memory
from jacridge import JacobianKernelRidge


def test_memory_that_is_not_there_is_refused_with_numbers_and_a_way_out(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2 * 10**9)
    with pytest.raises(
        MemoryError, match=r"This needs 3 GB of memory, but only 2 GB is available. Rest."
    ):
        memory.check_memory(3 * 10**9, "This", "Rest.")
    memory.check_memory(2 * 10**9, "This", "Rest.")


def test_small_amounts_of_memory_are_told_in_megabytes(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
    with pytest.raises(MemoryError, match=r"needs 20 MB of memory, but only 1 MB is"):
        memory.check_memory(2 * 10**7, "This", "Rest.")


def test_memory_is_not_refused_where_nobody_knows_how_much_there_is(rng, size):
    X = rng.standard_normal((300, 2))
    size("memory", None)
    for solver in ("auto", "exact"):
        est = JacobianKernelRidge(1.0, solver=solver).fit(X, X[:, 0])
        assert est.solver_ == "exact"


def test_the_smaller_of_the_machine_and_its_control_group_counts(monkeypatch):
    monkeypatch.setattr(memory, "_machine_memory", lambda: 5)
    for limit, expected in ((3, 3), (None, 5), (9, 5)):
        monkeypatch.setattr(memory, "_cgroup_memory", lambda limit=limit: limit)
        assert memory.available_memory() == expected


def test_the_memory_of_this_machine_is_known_and_plausible():
    # Others take and free memory between the two looks.
    expected = psutil.virtual_memory().available
    assert memory._machine_memory() == pytest.approx(expected, rel=0.5)


def test_the_automatic_solver_takes_landmarks_where_the_matrix_does_not_fit(rng, size):
    X = rng.standard_normal((300, 2))
    size("memory", 8 * 300**2)
    est = JacobianKernelRidge(1.0, n_landmarks=20, random_state=0).fit(X, X[:, 0])
    assert est.solver_ == "nystrom"
