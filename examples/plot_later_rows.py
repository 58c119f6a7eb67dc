"""
Time order: choosing a model by later rows
==========================================

A model that fills gaps well may be a poor forecast. For rows in time order, ``held_out="later"``
chooses kernel, metric, bandwidth and penalty by how well later rows are predicted.
"""

import matplotlib.pyplot as plt
import numpy as np

from jacridge import AutoKernelRidge

rng = np.random.default_rng(7)
time = np.arange(240)
season = 2 * np.pi * time / 12
X = np.column_stack([time / 12, np.sin(season), np.cos(season)])
# A trend, a season, higher Decembers and noise.
y = 0.03 * time + np.sin(season) + 0.5 * (time % 12 == 11) + 0.2 * rng.standard_normal(240)
known, new = slice(0, 180), slice(180, 240)

# %%
# Both models see fifteen years. The five years after them are predicted:

figure, axes = plt.subplots(2, 1, figsize=(8, 5), sharex=True, sharey=True, layout="constrained")
for ax, held_out in zip(axes, ("random", "later"), strict=True):
    model = AutoKernelRidge(held_out=held_out, random_state=0).fit(X[known], y[known])
    ax.plot(X[:, 0], y, ".", color="0.6", markersize=4)
    ax.plot(X[:, 0], model.predict(X))
    ax.axvline(15, color="0.6", linestyle="--", zorder=0)
    r2 = {name: model.score(X[rows], y[rows]) for name, rows in (("known", known), ("new", new))}
    ax.set_title(f"held_out={held_out!r}: R2 {r2['known']:.2f} before, {r2['new']:.2f} after")
axes[1].set_xlabel("years")
