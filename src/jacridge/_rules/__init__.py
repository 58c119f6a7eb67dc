"""Rules that choose bandwidth and penalty, and the training data as they see them."""
