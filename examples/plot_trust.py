"""
When not to trust the rule
==========================

The rule knows the number of rows and the largest distance between them. It does not know where the
rows lie, and it does not use the target. Rows at random places leave gaps much wider than the even
spacing, and the fit oscillates there. ``diagnose`` reports this and recommends what to do.
"""

import matplotlib.pyplot as plt
import numpy as np

from jacridge import JacobianKernelRidge, plots

rng = np.random.default_rng(1)
X = np.sort(rng.uniform(0, 6, size=(60, 1)), axis=0)
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)

est = JacobianKernelRidge().fit(X, y)
est.diagnose()

# %%
# A model that uses the target to choose the bandwidth and the penalty:

advised = JacobianKernelRidge(bandwidth="auto", alpha="auto", random_state=0).fit(X, y)
advised.diagnose()

# %%
# Both fits:

figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), sharey=True, layout="constrained")
for ax, model, title in zip(axes, (est, advised), ("jacobian", "auto"), strict=True):
    plots.CurveDisplay.from_estimator(model, X, y, points=600, ax=ax)
    ax.set(title=rf"{title}: $\sigma$ = {model.bandwidth_:.3g}", ylim=(-1.6, 1.6))
plt.show()
