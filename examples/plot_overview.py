"""
What a fitted model provides
============================

Use ``AutoKernelRidge()``: it chooses the kernel, the metric, the bandwidth and the penalty. The
model has prediction intervals, derivatives, and effects with standard errors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from jacridge import AutoKernelRidge, plots

# %%
# A curve with increasing noise and a gap in the data:

rng = np.random.default_rng(0)
X = np.sort(np.append(rng.uniform(0, 5, 130), rng.uniform(6.5, 9, 70)))[:, None]
y = np.sin(X[:, 0]) + 0.3 * X[:, 0] + (0.05 + 0.05 * X[:, 0]) * rng.standard_normal(200)
curve = AutoKernelRidge(random_state=0).fit(X, y)

# %%
# A table with ten features:

table, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
table /= table.std().where(table.nunique() > 2, 1)  # sex has two values and stays as it is
model = AutoKernelRidge(random_state=0).fit(table, progression)

# %%
# Predictions with a 90 % interval, the slope with its 95 % band, and the average effect of each
# feature of the table, per standard deviation:

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
plots.CurveDisplay.from_estimator(curve, X, y, coverage=0.9, ax=left)
plots.SlopeBandDisplay.from_estimator(curve, np.linspace(0, 9, 300)[:, None], feature=0, ax=middle)
plots.EffectsDisplay.from_estimator(model, ax=right)
left.set(title="prediction and interval", xlabel="feature", ylabel="target")
middle.set(title="slope and its band", xlabel="feature", ylabel="slope")
right.set(title="effects with standard errors", xlabel="average effect")
plt.show()
