"""
Rows in Dask arrays
===================

``fit``, ``predict`` and ``select_bandwidth`` accept Dask arrays. Blocks stay on the workers. A pass
over them returns a matrix whose size is the square of the number of landmarks, regardless of the
number of rows. With a ``distributed.Client``, the same code runs on a cluster.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from jacridge import JacobianKernelRidge, plots, select_bandwidth

# %%
# 200,000 rows in blocks of 20,000. They could come from files and need not fit in memory.

draw = da.random.default_rng(0)
X = draw.uniform(-2, 2, size=(200_000, 2), chunks=(20_000, 2))
y = da.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * draw.standard_normal(200_000, chunks=20_000)
print(select_bandwidth(X, rule="jacobian").sigma)

# %%
# The model is the same as for NumPy arrays, regardless of the block size:

est = JacobianKernelRidge("scale", alpha=0.1, n_landmarks=200, random_state=0).fit(X, y)
print(est.solver_, len(est.X_fit_))

# %%
# Predictions are lazy: they are a Dask array with the same blocks as the rows.

predicted = est.predict(X)
print(type(predicted).__module__, predicted.numblocks)
print("R2:", round(float(1 - ((y - predicted) ** 2).mean() / y.var()), 3))

# %%
side = np.linspace(-2, 2, 60)
grid = np.column_stack([np.tile(side, 60), np.repeat(side, 60)])
figure, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
plots.plot_surface(side, side, est.predict(grid).reshape(60, 60), ax=ax)
plt.show()
