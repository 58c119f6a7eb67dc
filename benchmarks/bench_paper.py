"""One split of Table 2: five data sets, closed forms and searches, in two processes.

    python bench_paper.py > ../docs/reproduce_data/timed.csv

The page `reproduce` reads that file.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from _ratio import Rows

from jacridge.experiments import real_data
from jacridge.experiments._table import Harness, job


def main():
    jobs = [
        job(real_data._part, len(rules), dataset=name, seed=0, rows_used=10_000, part=part)
        for part, (rules, _) in real_data.PARTS.items()
        for name in real_data.TITLES
        if part != "authors"
    ]
    with TemporaryDirectory() as out:
        start = perf_counter()
        Harness(Path(out), processes=2).rows("table2", jobs)
        Rows().add(run="table2", seconds=perf_counter() - start)


if __name__ == "__main__":
    main()
