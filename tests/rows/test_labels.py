"""Classes of labels, counted wherever the rows are."""

import numpy as np
import pytest

from inside import ArrayLabels, ParquetLabels, dask_labels
from jacridge.parquet import ParquetFiles

da = pytest.importorskip("dask.array")
pl = pytest.importorskip("polars")


def in_files(y, w, folder):
    frame = pl.DataFrame({"y": y, "w": w})
    frame[:2].write_parquet(folder / "1.parquet")
    frame[2:].write_parquet(folder / "2.parquet")
    return ParquetLabels(ParquetFiles(str(folder / "*.parquet"), ["w"]), "y", "w")


PLACES = {
    "memory": lambda y, w, _: ArrayLabels(y, w),
    "dask": lambda y, w, _: dask_labels(*(da.from_array(part, chunks=2) for part in (y, w))),
    "parquet": in_files,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("weights", "counts"),
    [
        ([2.0, 2.0, 0.5, 0.5], [2, 2]),
        ([2.0, 2.0, 1.0, 3.0], [5, 3]),
        ([2.0, 2.0, 0.0, 1.5], [2, 1]),
    ],
)
def test_weights_count_as_rows_only_if_those_of_all_parts_are_whole(
    place, weights, counts, tmp_path
):
    y, w = np.array([0, 1, 1, 0]), np.array(weights)
    found = PLACES[place](y, w, tmp_path).totals()
    assert found.counts.tolist() == counts
    assert found.weights.tolist() == [w[y == label].sum() for label in (0, 1)]
