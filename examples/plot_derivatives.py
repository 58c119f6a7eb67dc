"""
Derivatives: slopes and importances
===================================

A kernel model has derivatives in closed form. They show which features matter and in which
direction, for each row.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from jacridge import AutoKernelRidge, plots

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(X)

est = AutoKernelRidge(random_state=0).fit(X, y)
J = est.jacobian(X)
print(J.shape)

# %%
# The importance of a feature is the root mean square of its slope: how much the prediction
# typically changes when the feature changes by one standard deviation. A plot of the slope against
# the feature shows whether the effect is the same everywhere.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
plots.SlopeDisplay.from_estimator(est, X, ax=left)
plots.SlopeDisplay.from_estimator(est, X, feature="bmi", ax=right)
plt.show()
