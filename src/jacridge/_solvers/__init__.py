"""Solvers: exact, Nystrom and conjugate gradients, and the models that they return."""
