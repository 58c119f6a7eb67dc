"""Names that tests go through one by one, written out by hand; test_public.py checks the lists."""

KERNELS = ("gaussian", "matern52", "matern32", "exponential", "laplacian")
# The kernels with a gradient everywhere, also where two rows meet.
SMOOTH = KERNELS[:3]
METRICS = ("euclidean", "scaled", "diagonal", "full", "auto", "geodesic", "precomputed")
SOLVERS = ("auto", "exact", "nystrom", "pcg")
HELD_OUT = ("random", "later")
# The rules that solve, and so look at y.
SEARCHES = ("loo", "gcv", "mml", "jacobian_loo", "jacobian_mml", "auto")
# The rules that choose sigma and lambda from X alone, by a search.
WITHOUT_Y = ("ssmm", "loo_without_y")
