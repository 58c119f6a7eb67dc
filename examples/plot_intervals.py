"""
Prediction intervals
====================

Jackknife+ intervals use the leave-one-out residuals, which are available in closed form. The only
assumption is that the rows are exchangeable. Here the noise is skewed and far from normal.
"""

import matplotlib.pyplot as plt
import numpy as np

from jacridge import JacobianKernelRidge, plots

rng = np.random.default_rng(0)


def draw(n):
    X = rng.uniform(0, 6, size=(n, 1))
    return X, np.sin(X[:, 0]) + 0.2 * (rng.exponential(size=n) - 1)


X, y = draw(150)
est = JacobianKernelRidge(bandwidth="auto", alpha="auto", random_state=0).fit(X, y)

# %%
# A 90 % interval, and the share of 5000 new observations that it covers:

X_new, y_new = draw(5000)
lower, upper = est.predict_interval(X_new, coverage=0.9)
print(f"covered: {((lower <= y_new) & (y_new <= upper)).mean():.3f}")

# %%
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
plots.CurveDisplay.from_estimator(est, X, y, coverage=0.9, ax=ax)
plt.show()
