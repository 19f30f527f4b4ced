# Every target sets up what it needs. The first run installs into .venv and takes a few minutes.
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

.PHONY: help install lab test test-browser execute student gain site bench lint clean

help:
	@echo "make lab           open the course in JupyterLab"
	@echo "make test          re-run every notebook and compare, test the helpers"
	@echo "make test-browser  drive JupyterLab in headless Chromium"
	@echo "make execute       re-run every notebook and store its outputs"
	@echo "make student       write a copy without solutions and outputs into student/"
	@echo "make gain          a class's gain from pre-test to post-test: SCORES=folder"
	@echo "make site          write a static edition into site/: no server, no network"
	@echo "make bench         measure sliders, suite, memory and layer; takes 10 minutes"
	@echo "make lint          check style and format of code and notebooks"
	@echo "make clean         remove .venv and caches"

install: $(VENV)/.installed

# The stamp is touched last, so an install that was broken off is taken up again; so is a half-made
# environment, whose pip does not work. Another one is left as it is.
$(VENV)/.installed: requirements.txt pyproject.toml
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		$(PYTHON) -c $(CHECK_PYTHON) && $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -c $(CHECK_PYTHON)
	$(BIN)/python -m pip install -r requirements.txt
	@touch $@

# The default URL, so that the address that is printed leads to lesson 1 as well, not only the
# browser that is opened. JupyterLab refuses to start as root unless told that this is meant.
lab: install
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/$(firstword $(NOTEBOOKS)) --ip=127.0.0.1 \
		$(if $(filter 0,$(shell id -u)),--allow-root) $(LAB_FLAGS)

test: install
	$(BIN)/pytest

test-browser: install
	$(BIN)/pytest tests/browser

# Neither times nor versions nor live views are stored: a second run changes nothing. What ran
# before a lesson that failed is tidied as well.
execute: install
	$(BIN)/jupyter nbconvert --to notebook --execute --inplace $(NOTEBOOKS) \
		--ExecutePreprocessor.record_timing=False \
		--ExecutePreprocessor.store_widget_state=False \
		--ClearMetadataPreprocessor.enabled=True \
		--ClearMetadataPreprocessor.clear_cell_metadata=False \
		--ClearMetadataPreprocessor.preserve_nb_metadata_mask='{"kernelspec"}'; status=$$?; \
	$(BIN)/python -m course_utils.jupyter.saving $(NOTEBOOKS) && exit $$status

# The copy for learners: solution cells are tagged, and every output goes. Nobody's work is replaced.
student: install
	@test -n "$(STUDENT)" && test -z "$$(ls -A "$(STUDENT)" 2>/dev/null)" || { \
		echo "The folder '$(STUDENT)' must be new or empty: what is in it may be somebody's work." \
		"Move it away, or choose another: make student STUDENT=folder"; exit 1; }
	$(BIN)/jupyter nbconvert --to notebook --output-dir "$(STUDENT)" $(NOTEBOOKS) \
		--TagRemovePreprocessor.enabled=True \
		--TagRemovePreprocessor.remove_cell_tags=solution \
		--ClearOutputPreprocessor.enabled=True
	cp notebooks/mistakes.md "$(STUDENT)"

# One CSV file for each learner, anywhere inside the folder.
gain: install
	$(BIN)/python -m course_utils.gain "$(SCORES)" "$(GAIN)"

# Pages that open from disk, whose explorers move without a kernel.
site: install
	$(BIN)/python docs/build.py "$(SITE)"

# With the harness of the browser tests. BENCH_FLAGS=--quick only proves that it works.
bench: install
	PYTHONPATH=tests/browser:tests $(BIN)/python tests/bench $(BENCH_FLAGS)

lint: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache
	find course_utils tests -name __pycache__ -exec rm -rf {} +
