"""
Classes with calibrated probabilities
=====================================

``AutoKernelClassifier`` chooses kernel, metric, bandwidth and penalty, and calibrates its
probabilities by leave-one-out, without a second fit. Two half moons show the fitted surface. New
rows show whether a prediction with probability 0.8 is correct four times out of five.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_moons
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics import log_loss

from jacridge import AutoKernelClassifier

X, y = make_moons(400, noise=0.3, random_state=0)
X_new, y_new = make_moons(5000, noise=0.3, random_state=1)
models = {
    "AutoKernelClassifier": AutoKernelClassifier(random_state=0).fit(X, y),
    "boosted trees": HistGradientBoostingClassifier(random_state=0).fit(X, y),
}
for name, model in models.items():
    loss = log_loss(y_new, model.predict_proba(X_new))
    print(f"{name}: accuracy {model.score(X_new, y_new):.3f}, log loss {loss:.3f}")

# %%
# The probability of the second class, with the training rows:

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    DecisionBoundaryDisplay.from_estimator(
        model, X, response_method="predict_proba", levels=10, cmap="cividis", alpha=0.8, ax=ax
    )
    for label, marker in ((0, "o"), (1, "^")):
        ax.plot(*X[y == label].T, marker, color="white", markeredgecolor="black", markersize=4)
    ax.set(title=name, xlabel="first feature")
axes[0].set(ylabel="second feature")

# %%
# How often rows with a given probability belong to the second class. On the diagonal, the
# probabilities are correct. Below it on the right, and above it on the left, the model is too
# confident.

figure, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
for (name, model), marker in zip(models.items(), "os", strict=True):
    CalibrationDisplay.from_estimator(
        model, X_new, y_new, n_bins=10, name=name, marker=marker, ax=ax
    )
ax.set(xlabel="predicted probability", ylabel="share of rows in the class")
plt.show()
