"""
The Jacobian norm, approximate and true
=======================================

The rule minimises an approximate norm of the derivative. The norm is the product of a factor that
falls with the bandwidth and one that grows. This example compares it with the true norm of fitted
models.
"""

import matplotlib.pyplot as plt
import numpy as np

from jacridge import JacobianKernelRidge, plots, select_bandwidth, theory

X = np.linspace(0, 1, 10)[:, None]
y = np.sin(2 * np.pi * X[:, 0])
sigma = np.geomspace(0.02, 2, 200)

# %%
# There are three regimes. Without a penalty the minimum is global. With a small penalty it is
# local. With a penalty above :math:`2 n e^{-3/2}` there is no minimum, and the rule uses the value
# at the threshold.

figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
for ax, lam in zip(axes, (0, 1e-3, 10), strict=True):
    choice = select_bandwidth(X, alpha=lam)
    norm = theory.approximate_jacobian_norm(sigma, choice.n, choice.spacing, lam)
    factors = {"j_a": theory.j_a(sigma), "j_b": theory.j_b(sigma, choice.n, choice.spacing, lam)}
    plots.plot_norm(sigma, norm, **factors, chosen=choice.sigma, ax=ax)
    ax.set(title=rf"$\lambda = {lam:g}$: {theory.regime(choice.n, lam)}", ylim=(1e-3, 1e5))
plt.show()

# %%
# The true norm is the largest slope of the model, refitted for each bandwidth. The approximate norm
# is known up to a constant; it is scaled to equal the true norm at the chosen bandwidth.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
for ax, power in zip(axes, (-8, -2), strict=True):
    est = JacobianKernelRidge(alpha=10.0**power).fit(X, y)
    plots.JacobianNormDisplay.from_estimator(est, X, y, ax=ax)
    ax.set(title=rf"$\lambda = 10^{{{power}}}$", ylim=(1, 100))
plt.show()
