"""What tests know of the rules, written out by hand."""

# The rules that solve, and so look at y.
SEARCHES = ("loo", "gcv", "mml", "jacobian_loo", "jacobian_mml", "auto")
# The rules that choose sigma and lambda from X alone, by a search.
WITHOUT_Y = ("ssmm", "loo_without_y")
