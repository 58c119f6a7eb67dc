"""
Two features: a fitted surface
==============================

The data are two hundred noisy observations of a smooth surface at random places. With ``"auto"``
for both, the bandwidth and the ridge penalty are chosen by the leave-one-out residuals. For each
bandwidth, one eigendecomposition gives these residuals for every penalty.
"""

import matplotlib.pyplot as plt
import numpy as np

from jacridge import JacobianKernelRidge, plots


def surface(X):
    return np.cos(3 * X[:, 0]) * X[:, 1] + X[:, 0]


rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(200, 2))
y = surface(X) + 0.1 * rng.standard_normal(200)

est = JacobianKernelRidge(bandwidth="auto", alpha="auto", random_state=0).fit(X, y)
print(f"sigma = {est.bandwidth_:.3f}, lambda = {est.alpha_:.3g}")

# %%
# The fit with the observations, and the true surface:

side = np.linspace(-1, 1, 60)
grid = np.column_stack([np.tile(side, 60), np.repeat(side, 60)])

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
plots.SurfaceDisplay.from_estimator(est, X, ax=left)
left.set(title="fitted", xlabel="first feature", ylabel="second feature")
plots.plot_surface(side, side, surface(grid).reshape(60, 60), label="truth", ax=right)
right.set_title("truth")
plt.show()
