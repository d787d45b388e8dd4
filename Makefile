# Every target makes the environment it needs in .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo demo-tune test lint bench clean

help:
	@echo "make demo    a real town hall debate on the embedded model, then a comparison on a small held-out set"
	@echo "make demo-tune   compile, tune, hold out and export a small debate on the embedded model"
	@echo "make test    format, lint, types, import directions and all tests"
	@echo "make bench   the benchmarks behind the figures in the documentation"
	@echo "make clean   remove .venv and caches (runs/ and studies/ stay)"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "townhall needs Python 3.11 or newer; say which with: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	@echo "installing townhall with the embedded model's engine into $(VENV) ..." >&2
	$(BIN)/python -m pip install --quiet --editable '.[local]'
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	@echo "installing townhall with all extras and the development tools into $(VENV) ..." >&2
	$(BIN)/python -m pip install --quiet --editable '.[local,chess,viz,postgres,search,dashboard,dev]'
	@touch $@ $(VENV)/.demo

# mypy wants the package in a folder of its own name; the repository root is the package.
.tools/townhall:
	@mkdir -p .tools && ln -sfn .. .tools/townhall

demo: $(VENV)/.demo
	@bash examples/demo.sh

demo-tune: $(VENV)/.demo
	@bash examples/demo_tune.sh

lint: $(VENV)/.dev .tools/townhall
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	MYPYPATH=.tools $(BIN)/mypy -p townhall
	$(BIN)/lint-imports

# Tests that wait for real processes and servers can be turned by a busy machine: what failed is run once more, alone.
test: lint
	$(BIN)/python -m pytest -n auto --dist loadfile || \
		$(BIN)/python -m pytest --last-failed --last-failed-no-failures none

bench: $(VENV)/.dev
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) .tools build *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
