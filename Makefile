# `make demo` and `make test` need nothing but Python 3.11 or newer: they make .venv themselves,
# and again when pyproject.toml changes.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
# On few cores, one BLAS thread in each of several pytest processes beats the reverse. They share
# the compiled files, which an environment may have switched off. All tests of a file go to one
# process, so that a browser, a cluster or a fit that they share is made once.
PYTEST := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --maxprocesses 8 --dist loadfile

.PHONY: help demo test quick lint format docs bench clean

help:
	@echo "make demo    compare the rules on scikit-learn's diabetes data; picture in out/"
	@echo "make test    ruff, mypy, pytest with doctests"
	@echo "make quick   the tests that take less than a second each"
	@echo "make lint    ruff and mypy only;  make format  let ruff rewrite the files"
	@echo "make docs    the documentation;  make bench  the benchmarks;  make clean"

demo: $(VENV)/.cli,plots,xlsx
	@mkdir -p out
	$(BIN)/jacridge compare --plot out/compare.png

test: lint
	$(PYTEST)
	@echo "make test: ruff, mypy, tests and doctests passed."

quick: $(VENV)/.test
	$(PYTEST) -m "not slow"

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/.test
	@mkdir -p out
	@set -e; for file in benchmarks/bench_*.py; do \
		echo "$$file" >&2; $(BIN)/python $$file | tee out/$$(basename $$file .py).csv; done

# One environment; a stamp for each set of extras that is in it.
$(VENV)/.%: pyproject.toml
	@test -n "$(PYTHON)" || { echo "jacridge needs Python 3.11 or newer; none was found." >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet -e '.[$*]'
	@touch '$@'

clean:
	rm -rf $(VENV) out build dist docs/_build docs/gallery docs/generated .mypy_cache .pytest_cache .ruff_cache .hypothesis
