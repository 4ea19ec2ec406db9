# Needs Python >= 3.11, git and make; everything else is installed into .venv and .tools.
ifeq ($(OS),Windows_NT)
PYTHON ?= python
SCRIPTS := Scripts
else
PYTHON ?= python3
SCRIPTS := bin
endif
BIN := .venv/$(SCRIPTS)
UV_VERSION := 0.13.8
UV := .tools/$(SCRIPTS)/uv
# The certificates of the machine, as pip uses them: a network may have an issuer of its own.
export UV_SYSTEM_CERTS := 1
DEMO := sqlite:///build/demo.db
# Each process takes half of the tests in their order, so that fixtures of a file are set up once, and then helps out.
PARALLEL := -n 2 --dist worksteal

.PHONY: demo lint quick test coverage bench audit dist clean

## Set up, index the bundled sample and search it.
demo: .venv/installed
	@$(BIN)/toolscout index --sample --store $(DEMO)
	@$(BIN)/toolscout search "merge an open pull request" --store $(DEMO) --limit 3
	@echo "Next: '$(BIN)/toolscout import' finds the MCP servers of your agent hosts, 'import --write' puts toolscout in front."

## Lint, types, and whether every imported package is declared.
lint: .venv/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/deptry src

## Lint and the tests that start no process, without generated cases and documentation: a minute and a half.
quick: lint
	$(BIN)/pytest -q $(PARALLEL) -m "not process and not fuzz and not docs and not timing"

## Lint and all tests. Those that compare times have the machine to themselves, at the end.
test: lint
	$(BIN)/pytest -q $(PARALLEL) -m "not timing"
	$(BIN)/pytest -q -m timing

## The same tests, slower, with the branches that they reach: at least 85 %.
coverage: .venv/developing
	$(BIN)/pytest --cov --cov-report=term

## Every figure of the README; needs TOOLSCOUT_BENCH, see docs/benchmarks.md.
bench: .venv/developing
	$(BIN)/python -m benchmarks

## Known vulnerabilities of the locked dependencies; asks osv.dev.
audit: .tools/uv-$(UV_VERSION)
	$(UV) audit --frozen

## Wheel and sdist, in dist/.
dist: .tools/uv-$(UV_VERSION)
	$(UV) build --out-dir dist

.tools/uv-$(UV_VERSION):
	$(PYTHON) -m venv .tools
	.tools/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

.venv/installed: .tools/uv-$(UV_VERSION) pyproject.toml uv.lock
	$(UV) sync --quiet --frozen --inexact --no-dev --compile-bytecode --python $(PYTHON)
	@touch $@

.venv/developing: .tools/uv-$(UV_VERSION) pyproject.toml uv.lock
	$(UV) sync --quiet --frozen --all-groups --python $(PYTHON)
	@touch $@ .venv/installed

clean:
	rm -rf .venv .tools build .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
