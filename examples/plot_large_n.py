"""
Many rows: landmarks instead of all pairs
=========================================

An exact fit stores an n x n matrix. With ``solver="nystrom"``, rows stream in blocks, and only a
matrix with one row and column per landmark is stored: time grows in proportion to n, and memory
hardly grows. ``solver="auto"``, the default, uses this solver above 10,000 rows.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from jacridge import JacobianKernelRidge

rng = np.random.default_rng(0)


def draw(n):
    X = rng.uniform(-2, 2, size=(n, 3))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + 0.1 * rng.standard_normal(n)


X, y = draw(80_000)
X_new, y_new = draw(2_000)

# %%
# The same model on increasing numbers of rows. The bandwidth comes from the ``scale`` rule, so that
# only the number of rows differs:

sizes, seconds, errors = (5_000, 10_000, 20_000, 40_000, 80_000), [], []
for n in sizes:
    est = JacobianKernelRidge("scale", alpha=0.1, solver="nystrom", n_landmarks=300, random_state=0)
    start = perf_counter()
    est.fit(X[:n], y[:n])
    seconds.append(perf_counter() - start)
    errors.append(1 - est.score(X_new, y_new))

# %%
# Doubling the rows doubles the time:

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.plot(sizes, seconds, "o-", color="#0072B2")
left.set(xlabel="rows", ylabel="seconds to fit", xlim=(0, None), ylim=(0, None))
right.plot(sizes, errors, "o-", color="#D55E00")
right.set(xlabel="rows", ylabel="$1 - R^2$ on new rows", xlim=(0, None), ylim=(0, None))
for ax in (left, right):
    ax.set(xticks=sizes[2:], xticklabels=[f"{n:,}" for n in sizes[2:]])
plt.show()
