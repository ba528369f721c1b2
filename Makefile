# One word per chore. Each is a short script in scripts/ or one line here.
.DEFAULT_GOAL := help
.PHONY: help demo test test-all validate bench docs lint clean
ARGS ?=

help:
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

demo: .venv/.installed-plot  ## simulate a network, find its anomalies, draw the picture
	@scripts/demo $(ARGS)

test: .venv/.installed-test  ## every check: ruff, mypy, imports, tests, examples of the docs
	@scripts/test $(ARGS)

test-all: test  ## the tests once more with Python 3.12 and 3.13
	@scripts/test-all $(ARGS)

validate: .venv/.installed-test  ## false-alarm rates on simulated data without anomalies
	@.venv/bin/python benchmarks/validate.py $(ARGS)

bench: .venv/.installed-bench  ## speed and memory, beside the peers' real packages
	@.venv/bin/python benchmarks/speed.py $(ARGS)

docs: .venv/.installed-test  ## run every example in README.md and docs/
	@.venv/bin/python -m pytest tests/test_docs.py $(ARGS)

lint: .venv/.installed-test  ## mend what a machine can mend, then check
	@scripts/lint

clean:  ## remove environments, caches and the demo's output
	rm -rf .venv .venv-* demo build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The stamp is older than pyproject.toml exactly when there is something new to install.
.venv/.installed-%: pyproject.toml constraints.txt
	@scripts/venv $*
