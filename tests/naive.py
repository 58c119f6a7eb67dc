"""Slow, obvious versions of every formula, sharing no code with src/.

Everything is a loop over rows, an explicit inverse or a determinant, as it is written on paper.
"""

from collections import Counter
from itertools import product

import mpmath
import numpy as np


def sigma_k(k, n, p, l_max, lam):
    """Equation (6) of the paper at 50 digits, with W_k = -1 beyond the threshold."""
    with mpmath.workdps(50):
        n, p, l_max, lam = (mpmath.mpf(v) for v in (n, p, l_max, lam))
        spacing = l_max / ((n - 1) ** (1 / p) - 1)
        if lam == 0 and k == -1:
            return mpmath.inf
        z = -lam * mpmath.sqrt(mpmath.e) / (2 * n)
        w = mpmath.lambertw(z, k).real if z > -mpmath.exp(-1) else mpmath.mpf(-1)
        return mpmath.sqrt(2) / mpmath.pi * spacing * mpmath.sqrt(1 - 2 * w)


def j_b(sigma, n, p, l_max, lam):
    """Second factor of Definition 1 at 50 digits."""
    with mpmath.workdps(50):
        sigma, n, p, l_max, lam = (mpmath.mpf(v) for v in (sigma, n, p, l_max, lam))
        root = ((n - 1) ** (1 / p) - 1) * mpmath.pi * sigma / (2 * l_max)
        return 1 / (n * mpmath.exp(-(root**2)) + lam)


def distances(X, Z):
    """Euclidean distances of all rows of X to all rows of Z, one by one."""
    return np.array([[np.sqrt(np.sum((x - z) ** 2)) for z in Z] for x in X])


def geodesics(X, Z):
    """Distances in metres between rows of (latitude, longitude), one by one."""
    return np.array([[vincenty(x, z) for z in Z] for x in X])


def vincenty(x, z):
    """Vincenty's inverse formula on WGS84, good to a millimetre for points not antipodal."""
    if tuple(x) == tuple(z):
        return 0.0
    a, f = 6378137.0, 1 / 298.257223563
    b = a * (1 - f)
    u1, u2 = (np.arctan((1 - f) * np.tan(np.radians(v[0]))) for v in (x, z))
    turn = lam = np.radians(z[1] - x[1])
    for _ in range(100):
        sin_s = np.hypot(
            np.cos(u2) * np.sin(lam),
            np.cos(u1) * np.sin(u2) - np.sin(u1) * np.cos(u2) * np.cos(lam),
        )
        cos_s = np.sin(u1) * np.sin(u2) + np.cos(u1) * np.cos(u2) * np.cos(lam)
        s = np.arctan2(sin_s, cos_s)
        sin_alpha = np.cos(u1) * np.cos(u2) * np.sin(lam) / sin_s
        cos2_alpha = 1 - sin_alpha**2
        cos_2m = cos_s - 2 * np.sin(u1) * np.sin(u2) / cos2_alpha if cos2_alpha > 1e-15 else 0.0
        c = f / 16 * cos2_alpha * (4 + f * (4 - 3 * cos2_alpha))
        inner = cos_2m + c * cos_s * (2 * cos_2m**2 - 1)
        last, lam = lam, turn + (1 - c) * f * sin_alpha * (s + c * sin_s * inner)
        if abs(lam - last) < 1e-15:
            break
    u = cos2_alpha * (a**2 - b**2) / b**2
    big_a = 1 + u / 16384 * (4096 + u * (-768 + u * (320 - 175 * u)))
    big_b = u / 1024 * (256 + u * (-128 + u * (74 - 47 * u)))
    third = big_b / 6 * cos_2m * (4 * sin_s**2 - 3) * (4 * cos_2m**2 - 3)
    delta = big_b * sin_s * (cos_2m + big_b / 4 * (cos_s * (2 * cos_2m**2 - 1) - third))
    return b * big_a * (s - delta)


def kernel(D, sigma):
    """Gaussian kernel of a matrix of distances, entry by entry."""
    return np.array([[np.exp(-(d**2) / (2 * sigma**2)) for d in row] for row in D])


def diameter(D):
    """Largest entry of a matrix of distances."""
    return max(max(row) for row in D)


def neighbour_spacing(X, distance=lambda x, z: np.sqrt(np.sum((x - z) ** 2))):
    """Median distance to the nearest other row among distinct rows, and rows that fell away."""
    distinct = []
    for row in X.tolist():
        if row not in distinct:
            distinct.append(row)
    rows = np.array(distinct)
    nearest = [
        min(distance(rows[i], rows[j]) for j in range(len(rows)) if j != i)
        for i in range(len(rows))
    ]
    return np.median(nearest), len(X) - len(rows)


def pair_distances(D):
    """Distances of all pairs of rows, each pair once."""
    return np.array([D[i, j] for i in range(len(D)) for j in range(i)])


def maxvar(D, sigmas):
    """The given bandwidth at which the kernel's entries off the diagonal vary most."""
    pairs = pair_distances(D)
    return max(sigmas, key=lambda sigma: np.var(np.exp(-(pairs**2) / (2 * sigma**2))))


def dual_coef(K, y, lam):
    """(K + lam I)^-1 y, by the inverse."""
    return np.linalg.inv(K + lam * np.eye(len(K))) @ y


def with_intercept(A, y):
    """Solution c and b of A c + b = y with c'1 = 0, by the bordered system; y of shape (n, k)."""
    found = np.linalg.solve(bordered(A), np.vstack([y, np.zeros((1, y.shape[1]))]))
    return found[:-1], found[-1]


def bordered(A):
    """A with a row and a column of ones around it: the equations of ordinary kriging."""
    return np.block([[A, np.ones((len(A), 1))], [np.ones((1, len(A))), np.zeros((1, 1))]])


def loo(K, y, lam):
    """Mean squared residual of n actual refits without an intercept."""
    total = 0.0
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        prediction = K[i, rest] @ dual_coef(K[np.ix_(rest, rest)], y[rest], lam)
        total += (y[i] - prediction) ** 2
    return total / len(y)


def gcv(K, y, lam):
    """Golub, Heath and Wahba's criterion with the matrix H that takes y to the fit."""
    n = len(y)
    H = K @ np.linalg.inv(K + lam * np.eye(n))
    return np.mean((y - H @ y) ** 2) / (1 - np.trace(H) / n) ** 2


def mml(K, y, lam):
    """Minus twice the log marginal likelihood at the best signal variance, no constants."""
    A = K + lam * np.eye(len(K))
    return len(y) * np.log(y @ np.linalg.inv(A) @ y / len(y)) + np.linalg.slogdet(A)[1]


def exact_mml(K, y, lam):
    """The same by the solution and the determinant at 50 digits, where none underflows."""
    n = len(y)
    with mpmath.workdps(50):
        A = mpmath.matrix(K.tolist()) + mpmath.mpf(lam) * mpmath.eye(n)
        x = mpmath.lu_solve(A, mpmath.matrix(y.tolist()))
        s2 = mpmath.fdot(x, y.tolist()) / n
        return float(n * mpmath.log(s2) + mpmath.log(mpmath.det(A)))


CRITERIA = {"loo": loo, "gcv": gcv, "mml": mml}


def refit_residuals(K, y, lam, w, centred):
    """Residual of each row for an actual refit without it, all of its weight left out.

    With `centred` each refit has an intercept of its own, the mean of y of the rows left.
    """
    residuals = np.empty(len(y))
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        mean = np.average(y[rest], weights=w[rest]) if centred else 0.0
        A = K[np.ix_(rest, rest)] + np.diag(lam / w[rest])
        residuals[i] = y[i] - mean - K[i, rest] @ np.linalg.inv(A) @ (y[rest] - mean)
    return residuals


def weighted_loo(K, y, lam, w, centred):
    """Weighted mean of the squared residuals of actual refits."""
    return np.average(refit_residuals(K, y, lam, w, centred) ** 2, weights=w)


def weighted_gcv(K, y, lam, w, centred):
    """Criterion of Golub, Heath and Wahba for rows scaled by the roots of their weights."""
    y = y - np.average(y, weights=w) if centred else y
    root = np.diag(np.sqrt(w))
    return gcv(root @ K @ root, root @ y, lam)


def weighted_mml(K, y, lam, w, centred):
    """Minus twice the log marginal likelihood at the best signal variance, noise lam / w."""
    y = y - np.average(y, weights=w) if centred else y
    return mml(K + np.diag(lam / w), y, 0.0)


WEIGHTED = {"loo": weighted_loo, "gcv": weighted_gcv, "mml": weighted_mml}


def leave_one_out(make, X, y, w=None):
    """Residual of each row for a model that was never shown it."""
    residuals = np.empty(np.shape(y))
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        weights = {} if w is None else {"sample_weight": w[rest]}
        residuals[i] = y[i] - make().fit(X[rest], y[rest], **weights).predict(X[[i]])[0]
    return residuals


def slopes(f, X, h):
    """Derivatives of f with respect to each feature, by the five-point central difference."""
    columns = []
    for e in np.eye(X.shape[1]) * h:
        near, far = f(X + e) - f(X - e), f(X + 2 * e) - f(X - 2 * e)
        columns.append((8 * near - far) / (12 * h))
    return np.stack(columns, axis=-1)


def profile(kernel, r):
    """A kernel at a distance of r bandwidths, with mpmath."""
    a3, a5 = mpmath.sqrt(3) * r, mpmath.sqrt(5) * r
    return {
        "gaussian": lambda: mpmath.exp(-(r**2) / 2),
        "matern52": lambda: (1 + a5 + a5**2 / 3) * mpmath.exp(-a5),
        "matern32": lambda: (1 + a3) * mpmath.exp(-a3),
        "exponential": lambda: mpmath.exp(-r),
        "laplacian": lambda: mpmath.exp(-r),
    }[kernel]()


def grid_eigenvalue(kernel, scale):
    """Sum of (-1)^j k(j) over the whole numbers: smallest eigenvalue on a line of spacing 1."""
    terms = (2 * (-1) ** j * profile(kernel, j / scale) for j in range(1, 10**6))
    total = mpmath.mpf(1)
    for term in terms:
        total += term
        if abs(term) < mpmath.eps:
            return total
    raise ValueError("no end")


def corner_sum(kernel, scale, p):
    """Sum of (-1)^(j_1 + ... + j_p) k(j) over a grid of spacing 1, up to 40 bandwidths."""
    reach = int(40 * scale)  # exp(-40) is 4e-18
    counts = Counter()
    for j in product(range(-reach, reach + 1), repeat=p):
        counts[sum(i * i for i in j)] += (-1) ** sum(j)
    near = {gap: n for gap, n in counts.items() if gap <= reach**2}
    return mpmath.fsum(n * profile(kernel, mpmath.sqrt(gap) / scale) for gap, n in near.items())


def grid_matrix(kernel, scale, side, p):
    """Kernel matrix of a grid of spacing 1 with so many points a side, in doubles."""
    axes = np.meshgrid(*[np.arange(side)] * p, indexing="ij")
    X = np.stack(axes, axis=-1).reshape(-1, p)
    steps = np.abs(X[:, None] - X)
    gaps = steps.sum(axis=2) if kernel == "laplacian" else (steps**2).sum(axis=2)
    distinct, place = np.unique(gaps, return_inverse=True)
    power = 1 if kernel == "laplacian" else mpmath.mpf(1) / 2
    known = [float(profile(kernel, mpmath.mpf(int(gap)) ** power / scale)) for gap in distinct]
    return np.array(known)[place].reshape(gaps.shape)


def lattice_minimum(spacing, p, lam):
    """Bandwidth of least Jacobian norm of the Gaussian kernel on a grid, by a fine search."""

    def norm(scale):
        k = np.arange(40)
        theta = 2 * np.sqrt(2 * np.pi) * scale * np.exp(-(((2 * k + 1) * np.pi * scale) ** 2) / 2)
        return 1 / (scale * (theta.sum() ** p + lam))

    low, high = 0.15, 0.6
    for _ in range(60):
        grid = np.linspace(low, high, 9)
        best = min(range(1, 8), key=lambda i: norm(grid[i]))
        low, high = grid[best - 1], grid[best + 1]
    return spacing * (low + high) / 2
