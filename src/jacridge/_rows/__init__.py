"""Rows and where they come from: arrays, memory maps, Parquet files, Dask arrays."""
