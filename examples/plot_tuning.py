"""
Tuning both: bandwidth and ridge penalty
========================================

One eigendecomposition per bandwidth gives the leave-one-out error for every ridge penalty. The map
shows the same kind of result as a grid search, which would refit every cell in every fold.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from jacridge import JacobianKernelRidge, plots

X, y = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(X)

# %%
# The default does not use the target. With ``alpha="loo"`` the penalty is chosen. With ``"auto"``
# for both, bandwidth and penalty are chosen together:

models = {
    "default": JacobianKernelRidge(),
    "alpha": JacobianKernelRidge(alpha="loo"),
    "auto": JacobianKernelRidge(bandwidth="auto", alpha="auto", random_state=0),
}
for name, est in models.items():
    est.fit(X, y)
    r2 = 1 - (est.loo_residuals_**2).mean() / y.var()
    print(f"{name:8} sigma {est.bandwidth_:6.2f}  lambda {est.alpha_:8.3g}  LOO R2 {r2:.3f}")

# %%
# The models on the map of the leave-one-out error:

figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
plots.CriterionDisplay.from_estimator(
    models["default"], X, y, alphas=np.geomspace(1e-6, 100, 25), ax=ax
)
for name, lift in (("alpha", -12), ("auto", 6)):
    est = models[name]
    ax.plot(est.bandwidth_, est.alpha_, "s", color="black", markeredgecolor="white", markersize=9)
    ax.annotate(name, (est.bandwidth_, est.alpha_), xytext=(9, lift), textcoords="offset points")
plt.show()
