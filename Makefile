# Needs Python >= 3.11, git and make; everything else is installed into .venv and .tools.
PYTHON ?= python3
UV := .tools/bin/uv
# The certificates of the machine, as pip uses them: a network may have an issuer of its own.
export UV_SYSTEM_CERTS := 1
DEMO := sqlite:///build/demo.db

.PHONY: demo test coverage bench clean

## Set up, index the bundled sample and search it.
demo: .venv/installed
	@.venv/bin/toolscout index --sample --store $(DEMO)
	@.venv/bin/toolscout search "when is everybody free this week" --store $(DEMO) --limit 5

## Set up and run lint, types and tests.
test: .venv/developing
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/pytest

## The same tests, slower, with what they reach; at least 85 % of all branches.
coverage: .venv/developing
	.venv/bin/pytest --cov --cov-report=term

## Every figure of the README; needs TOOLSCOUT_BENCH, see docs/benchmarks.md.
bench: .venv/developing
	.venv/bin/python -m benchmarks

$(UV):
	$(PYTHON) -m venv .tools
	.tools/bin/pip install --quiet --disable-pip-version-check uv

.venv/installed: $(UV) pyproject.toml uv.lock
	$(UV) sync --quiet --frozen --inexact --no-dev --compile-bytecode --python $(PYTHON)
	@touch $@

.venv/developing: $(UV) pyproject.toml uv.lock
	$(UV) sync --quiet --frozen --all-groups --python $(PYTHON)
	@touch $@ .venv/installed

clean:
	rm -rf .venv .tools build .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
