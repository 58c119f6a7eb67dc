"""
Outliers and the median rule
============================

The largest distance depends on only two rows. A few outliers increase it, and with it the
bandwidth. The rule ``jacobian_median`` uses the median distance between nearest neighbours instead.
"""

import matplotlib.pyplot as plt
import numpy as np

from jacridge import JacobianKernelRidge, plots, select_bandwidth

x = np.linspace(0, 6, 100)
y = np.sin(3 * x)

# %%
# A hundred rows, and three more that are moved farther and farther away:

far = np.geomspace(1, 1000, 30)
rows = [np.append(x, [6 + d, 6 + 1.1 * d, 6 + 1.2 * d])[:, None] for d in far]
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for rule, dash in (("jacobian", "-"), ("jacobian_median", "--")):
    ax.loglog(far, [select_bandwidth(X, rule=rule).sigma for X in rows], dash, label=rule)
ax.set(xlabel="distance of the outliers", ylabel=r"bandwidth $\sigma$")
ax.legend(frameon=False)
plt.show()

# %%
# The fits with the outliers at the largest distance:

X, targets = rows[-1], np.append(y, [0, 0, 0])
figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), sharey=True, layout="constrained")
for ax, rule in zip(axes, ("jacobian", "jacobian_median"), strict=True):
    est = JacobianKernelRidge(bandwidth=rule).fit(X, targets)
    inside = np.linspace(0, 6, 400)
    plots.plot_curve(inside, est.predict(inside[:, None]), data=(x, y), ax=ax)
    ax.set_title(rf"{rule}: $\sigma$ = {est.bandwidth_:.3g}")
plt.show()
