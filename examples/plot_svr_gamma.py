"""
A gamma for SVR
===============

The bandwidth is also useful outside kernel ridge regression: pass ``choice.gamma`` to
scikit-learn's ``SVR``, ``KernelRidge``, ``Nystroem`` or ``RBFSampler``. Here each closed-form rule
chooses the gamma of an ``SVR``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from jacridge import plots, select_bandwidth

X, y = make_friedman1(600, n_features=5, noise=0.5, random_state=0)
X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def score(gamma):
    return cross_val_score(SVR(C=10, gamma=gamma), X, y, cv=5).mean()


rules = ("jacobian", "jacobian_median", "silverman", "scale", "median", "maxvar")
choices = {rule: select_bandwidth(X, rule=rule) for rule in rules}
scores = {rule: score(choice.gamma) for rule, choice in choices.items()}
for rule, choice in choices.items():
    print(f"{rule:16} gamma = {choice.gamma:8.4f}   R2 = {scores[rule]:.3f}")

# %%
# The score for a grid of gammas, as a search would compute it, with the choices of the rules:

gammas = np.geomspace(1e-3, 10, 25)
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.semilogx(gammas, [score(gamma) for gamma in gammas], color="0.6", zorder=0)
plots.plot_rules(rules, [c.gamma for c in choices.values()], list(scores.values()), ax=ax)
ax.set(xlabel="gamma", ylabel="$R^2$ of SVR, five folds")
plt.show()
