"""
A learned metric: which features, which directions
==================================================

Without a learned metric, all features have the same bandwidth. Here the truth is known: the target
depends on two of fifty features, or on two directions in ten dimensions.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import subspace_angles

from jacridge import AutoKernelRidge, JacobianKernelRidge, plots

rng = np.random.default_rng(0)
X = rng.standard_normal((1500, 50))
y = np.sin(2 * X[:, 3]) + X[:, 7] ** 2 + 0.2 * rng.standard_normal(1500)

auto = AutoKernelRidge(random_state=0).fit(X[:1000], y[:1000])
one = JacobianKernelRidge("auto", "auto", metric="scaled", random_state=0).fit(X[:1000], y[:1000])
print(f"learned metric: test R2 {auto.score(X[1000:], y[1000:]):.2f}")
print(f"one bandwidth:  test R2 {one.score(X[1000:], y[1000:]):.2f}")

# %%
# ``choices_`` lists every candidate with its error on rows that were not used for learning. Both
# features that matter are found.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
plots.ChoiceDisplay.from_estimator(auto, ax=left)
plots.plot_importances([f"x{j}" for j in range(50)], auto.feature_importances_, largest=8, ax=right)
right.set(xlabel="importance, as a share")
plt.show()

# %%
# If the target depends on directions that are not aligned with any feature, a full metric can find
# them.

Q, _ = np.linalg.qr(rng.standard_normal((10, 2)))
X = rng.standard_normal((1000, 10))
U = X @ Q
y = np.sin(2 * U[:, 0]) + U[:, 1] ** 2 + 0.1 * rng.standard_normal(1000)

full = JacobianKernelRidge("auto", "auto", metric="full", random_state=0).fit(X, y)
found = np.linalg.svd(full.metric_)[0][:, :2]
print(f"largest angle to the true plane: {np.degrees(subspace_angles(found, Q).max()):.1f} degrees")

plots.MetricDisplay.from_estimator(full)
plt.show()
