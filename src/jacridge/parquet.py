"""Parquet files larger than memory, as the X of a fit."""

from ._rows.parquet_files import ParquetFiles

__all__ = ["ParquetFiles"]
