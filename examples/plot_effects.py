"""
Effects with standard errors
============================

Which features change the prediction, by how much, and how certain is that? The average slope of
each feature has a standard error in closed form.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from jacridge import AutoKernelRidge, plots

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X /= X.std().where(X.nunique() > 2, 1)  # sex has two values and stays as it is
est = AutoKernelRidge(random_state=0).fit(X, y)

# %%
# Slopes are per standard deviation here, because the features were divided by it. Sex has two
# values, so its effect is a first difference.

print(est.summary())

# %%
# The same effects as a plot, with errors that allow for uneven noise. Slopes of single rows are
# less certain than their average. The average prediction has a confidence band as well.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
plots.EffectsDisplay.from_estimator(est, robust=True, ax=left)
plots.SlopeBandDisplay.from_estimator(est, X, feature="bmi", ax=middle)
plots.AverageCurveDisplay.from_estimator(est, feature="bmi", ax=right)
plt.show()
