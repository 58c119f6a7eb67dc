"""Distances, kernels, diameters and neighbours, linear metrics."""
