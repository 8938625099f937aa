# Two commands matter: `make demo` shows the main job working, `make test` proves it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
STAMP  := $(VENV)/.installed
TOOLS  := $(VENV)/.release-tools
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Tests start hundreds of interpreters: with bytecode on disk each comes up in two thirds of the time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-all coverage lint types bench docs site dist sbom native-check clean web browser-parts

setup: $(STAMP)

help:
	@echo "make demo          crawl six sites that come with Quadloom, offline, and ask three questions"
	@echo "make test          set up, lint and run the tests; SEED=1234 repeats an order"
	@echo "make test-all      the same with the long proofs"
	@echo "make lint          ruff, mypy, import layers, lengths of files and folders"
	@echo "make docs          write the generated pages of docs/reference again"
	@echo "make web           the browser parts of the site; needs npm"
	@echo "make bench         CPU of a visit by phase"
	@echo "make native-check  what is in C under sanitizers; needs gcc"
	@echo "make coverage site dist types clean"

# Each runs again only when the dependencies change, so it costs nothing the second time. The demo needs no test tools.
$(RUNTIME): pyproject.toml requirements.txt $(wildcard src/quadloom/documents/native/*.[ch])
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) …"
	@$(PIP) -r requirements.txt
	@$(PIP) --no-deps -e .
	@$(BIN)/python -c "from quadloom.documents.syntaxes.html.elements import native_state as s; s() == 'in use' or print('the optional native part is', s())"
	@$(BIN)/python -m compileall -q src
	@touch $@

$(STAMP): $(RUNTIME) requirements-dev.txt requirements-data.txt lab/pyproject.toml tools/browser.sh
	@$(PIP) -r requirements-dev.txt
	@$(PIP) --no-deps -r requirements-data.txt
	@$(PIP) --no-deps -e lab
	@tools/browser.sh
	@touch $@

$(TOOLS): $(STAMP) requirements-release.txt
	@$(PIP) -r requirements-release.txt
	@touch $@

demo: $(RUNTIME) browser-parts
	@$(BIN)/quadloom demo --offline

# `make test SEED=1234` repeats an order that was printed, SEED=0 is the order in which the tests are written.
ORDER := $(if $(SEED),--seed $(SEED))

# Four at a time on two cores: tests of whole crawls wait as much as they work. File by file in the order of the folders,
# which begins with those that take long. Tests that judge elapsed time follow, alone. No test is run twice.
# Only their files are collected: all of them would take five seconds of CPU, as much as these tests.
TIMING = $$(grep -rl --include='test_*.py' 'mark\.timing' tests)

test: setup lint
	@$(BIN)/python -m pytest -n 4 $(ORDER) --dist loadfile --no-loadscope-reorder -m "not slow and not timing" && others=0 || others=1; \
		echo "alone, because they judge time:"; \
		$(BIN)/python -m pytest -n 0 -m "timing and not slow" $(TIMING) && exit $$others

test-all: setup lint native-check
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "(slow or not slow) and not timing" --timeout 1800 && others=0 || others=1; \
		echo "alone, because they judge time:"; \
		$(BIN)/python -m pytest -n 0 -m "(slow or not slow) and timing" --timeout 1800 $(TIMING) && exit $$others

# Lines and branches of src, child processes included; fails below the floor of pyproject.toml. Not killed processes.
coverage: setup
	@$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder -m "not slow and not timing" \
		--cov --cov-report=term:skip-covered --cov-report=html:$(VENV)/coverage

# mypy over the tests; `make lint` has it for the product.
types: setup
	@$(BIN)/mypy --config-file tools/test_types.ini

lint: setup
	@$(BIN)/ruff check src lab tests tools
	@$(BIN)/ruff format --check --quiet src lab tests tools
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo >$(VENV)/imports.log || { cat $(VENV)/imports.log; exit 1; }
	@$(BIN)/python tools/check_lengths.py

bench: setup
	@$(BIN)/quadloom bench pipeline

# Built once, quietly, where npm is there; the site works without them and says so.
browser-parts:
	@test -f src/quadloom/web/static/vendor/manifest.json || ! command -v npm >/dev/null \
		|| $(MAKE) --silent web >/dev/null 2>&1 || true

# The browser's parts of the site (SPARQL editor, charts); pages work without them.
web:
	@cd web-assets && npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 --silent && npm run --silent build

docs: setup
	@$(BIN)/python tools/build_reference.py

# The documentation as a site with search, in ./site; `mkdocs serve` shows it while you write.
site: $(TOOLS)
	@$(BIN)/python -m mkdocs build --strict --quiet

# What a release consists of: wheel, sdist and a bill of materials (CycloneDX), in ./dist.
dist: $(TOOLS) browser-parts
	@$(BIN)/python -m build --outdir dist .
	@$(MAKE) --silent sbom

# What is in C under GCC's sanitizers, leaks included. Needs gcc; takes some minutes.
native-check: setup
	@tools/check_native.sh $(BIN)/python

sbom: $(TOOLS)
	@mkdir -p dist
	@$(BIN)/python -m cyclonedx_py requirements --pyproject pyproject.toml --output-reproducible \
		--output-file dist/quadloom.cdx.json requirements.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache quadloom-demo
