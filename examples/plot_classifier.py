"""
A classifier on Nystrom features
================================

``JacobianNystroem`` makes features whose inner products are the Gaussian kernel, with the bandwidth
chosen. Any linear model on them is a kernel model: here logistic regression, which then draws
curved borders.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from jacridge import JacobianNystroem

X, y = make_moons(400, noise=0.25, random_state=0)
features = JacobianNystroem(n_components=60, bandwidth="scale", random_state=0)
models = {
    "linear": LogisticRegression(),
    "on 60 Nystrom features": make_pipeline(features, LogisticRegression()),
}
scores = {name: cross_val_score(model, X, y).mean() for name, model in models.items()}
print({name: round(score, 3) for name, score in scores.items()})

# %%
# What each of them makes of the plane:

side = np.linspace(-2, 3, 150)
plane = np.column_stack([np.tile(side, 150), np.repeat(side, 150)])
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    p = model.fit(X, y).predict_proba(plane)[:, 1].reshape(150, 150)
    ax.contourf(side, side, p, levels=np.linspace(0, 1, 11), cmap="cividis", alpha=0.8)
    for label, marker in ((0, "o"), (1, "^")):
        ax.plot(*X[y == label].T, marker, color="white", markeredgecolor="black", markersize=5)
    ax.set(title=f"{name}: accuracy {scores[name]:.2f}", xlim=(-2, 3), ylim=(-1.5, 2))
plt.show()
