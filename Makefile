# Every target sets up what it needs, when it first runs. `make lab` installs into .venv what the
# lessons need, which takes a few minutes; the others add their own tools.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
# Without the copies that JupyterLab makes, "…-Copy1.ipynb": they would come first.
NOTEBOOKS := $(sort $(wildcard notebooks/[0-9][0-9]_*[!0-9].ipynb))
LAB_FLAGS ?=
BENCH_FLAGS ?=
STUDENT ?= student
SITE ?= site
SCORES ?= scores
GAIN ?= gain.png

# Read by any Python, old ones too.
CHECK_PYTHON := 'import sys; sys.exit(None if (3, 11) <= sys.version_info[:2] <= (3, 14) else \
	"This course needs Python 3.11 to 3.14, and this is %d.%d. Try: make clean, then make \
	PYTHON=python3.11 lab" % sys.version_info[:2])'

EXTRAS := test browser site
.PHONY: help install $(EXTRAS:%=install-%) lab test test-browser execute student gain site links \
	bench lint constraints clean
.NOTPARALLEL:

help:
	@echo "make lab           open the course in JupyterLab"
	@echo "make test          re-run every notebook and compare, test the helpers"
	@echo "make test-browser  drive JupyterLab in headless Chromium"
	@echo "make execute       re-run every notebook and store its outputs"
	@echo "make student       write a copy without solutions and results into student/"
	@echo "make gain          a class's gain from pre-test to post-test: SCORES=folder"
	@echo "make site          write a static edition into site/: no server, no network"
	@echo "make links         try every link of the static edition that leads elsewhere"
	@echo "make bench         measure sliders, suite, memory and layer; takes 15 minutes"
	@echo "make lint          check style and format of code and notebooks"
	@echo "make constraints   write the versions of all installed packages into constraints.txt"
	@echo "make clean         remove .venv and caches"

# An extra's stamp bears a checksum of what it was installed from: in a folder that was copied, dates
# mean nothing. It comes last, so an install that was broken off is taken up again; so is a half-made
# environment, whose pip does not work. Another one is left as it is.
FROM := pyproject.toml constraints.txt $(sort $(wildcard course_utils/jupyter/*.json \
	course_utils/jupyter/labextension/*.* course_utils/jupyter/labextension/static/*))
SUM := $(shell cat $(FROM) 2>/dev/null | cksum | cut -d ' ' -f 1)

$(VENV)/.installed-%-$(SUM):
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		$(PYTHON) -c $(CHECK_PYTHON) && $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -c $(CHECK_PYTHON)
	$(BIN)/python -m pip install -c constraints.txt -e '.[$*]'
	@$(RELINK)
	@rm -f $(VENV)/.installed-$*-* && touch $@

RELINK = $(BIN)/python -S tools/relink.py $(VENV)

# The folder may have been moved or copied since.
install: $(VENV)/.installed-lab-$(SUM)
	@test -x $(BIN)/python || { echo "The Python that $(VENV) was made with has gone. Try: make" \
		"clean, then make lab"; exit 1; }
	@$(RELINK)

$(EXTRAS:%=install-%): install-%: install $(VENV)/.installed-%-$(SUM)

# The default URL, so that the address that is printed leads to lesson 1 as well, not only the
# browser that is opened. JupyterLab refuses to start as root unless told that this is meant.
lab: install
	@$(BIN)/python -m course_utils.jupyter.home
	$(BIN)/python -m jupyterlab --LabApp.default_url=/lab/tree/$(firstword $(NOTEBOOKS)) \
		--ip=127.0.0.1 $(if $(filter 0,$(shell id -u)),--allow-root) $(LAB_FLAGS)

test: install-test
	$(BIN)/python -m pytest

test-browser: install-test install-browser install-site
	$(BIN)/python -m pytest tests/browser

execute: install
	$(BIN)/python tools/execute.py $(NOTEBOOKS)

# The copy for learners: solution cells are tagged, and outputs go, but for what moves before a cell
# has run.
student: install
	$(BIN)/python tools/student.py "$(STUDENT)" $(NOTEBOOKS) notebooks/mistakes.md

# One CSV file for each learner, anywhere inside the folder.
gain: install
	$(BIN)/python -m course_utils.gain "$(SCORES)" "$(GAIN)"

# Pages that open from disk, whose explorers move without a kernel.
site: install-site
	$(BIN)/python docs/build.py "$(SITE)"

links: install-site
	$(BIN)/python docs/build.py --links

# With the harness of the browser tests. BENCH_FLAGS=--quick only proves that it works.
bench: install-test install-browser
	PYTHONPATH=tests/browser:tests $(BIN)/python tests/bench $(BENCH_FLAGS)

lint: install-test
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check

constraints: $(EXTRAS:%=install-%)
	$(BIN)/python tools/constraints.py

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache
	find course_utils tests -name __pycache__ -exec rm -rf {} +
