"""
One feature: what the bandwidth does
====================================

If the bandwidth is too small, the fit returns to the mean between the observations. If it is too
large, the fit is stiff. The rule ``jacobian`` chooses a bandwidth in between, without a search.
"""

import matplotlib.pyplot as plt
import numpy as np

from jacridge import JacobianKernelRidge, plots

X = np.linspace(0, 1, 12)[:, None]
y = np.sin(2 * np.pi * X[:, 0])

# %%
# Twelve rows of a smooth curve, evenly spread. The bandwidth is chosen when the model is fitted.

chosen = JacobianKernelRidge(alpha=1e-3).fit(X, y).bandwidth_
print(f"sigma = {chosen:.3f}")

# %%
# The same model with a fifth and with twenty times that bandwidth:

figure, axes = plt.subplots(1, 3, figsize=(12, 3.5), sharey=True, layout="constrained")
for ax, factor in zip(axes, (0.2, 1, 20), strict=True):
    est = JacobianKernelRidge(bandwidth=factor * chosen, alpha=1e-3).fit(X, y)
    plots.CurveDisplay.from_estimator(est, X, y, ax=ax)
    ax.set_title(
        f"{factor:g} times the chosen bandwidth" if factor != 1 else "the chosen bandwidth"
    )
    ax.get_legend().remove()
plt.show()
