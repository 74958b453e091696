# Thin: the logic lives in the package.  Each target sets up what it needs (see bootstrap.py).
PROFILE ?= mini
DATASET ?=
FORCE   ?=
PYTHON  ?= python3
TORCH   ?=
export TORCH

REPRO = py="$$($(PYTHON) bootstrap.py)" && "$$py" -m repro.app.cli
RUN   = py="$$($(PYTHON) bootstrap.py)" && "$$py" -m

.DEFAULT_GOAL := help
.PHONY: help setup reproduce check tune publish stability test lint bench clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup:  ## make the environment (.venv unless the active one already has the project)
	@$(PYTHON) bootstrap.py

reproduce:  ## run a profile end to end   [PROFILE=mini DATASET=name FORCE=1 TORCH=cpu]
	@$(REPRO) reproduce '$(PROFILE)' $(if $(DATASET),--dataset '$(DATASET)') $(if $(FORCE),--force)

check:  ## what a profile would run and cost   [PROFILE=mini DATASET=name CALIBRATE=1]
	@$(REPRO) check '$(PROFILE)$(if $(DATASET),:$(DATASET))' $(if $(CALIBRATE),--calibrate)

tune:  ## choose learning rates on the tuning split   [PROFILE=mini DATASET=name ARGS="--all"]
	@$(REPRO) tune '$(PROFILE)$(if $(DATASET),:$(DATASET))' $(ARGS)

publish:  ## copy a finished build into notebooks/rendered, figures and results   [PROFILE=mini]
	@$(REPRO) publish '$(PROFILE)$(if $(DATASET),:$(DATASET))'

stability:  ## which verdicts depend on the root seeds: four more studies   [PROFILE=mini]
	@$(REPRO) stability '$(PROFILE)$(if $(DATASET),:$(DATASET))'

test:  ## the tests, without the slow ones   [ARGS="-m slow"]
	@$(RUN) pytest -n auto --dist loadfile $(if $(ARGS),$(ARGS),-m "not slow")

lint:  ## format, lint, types, stripped notebooks
	@$(RUN) ruff format --check . && $(RUN) ruff check . && $(RUN) mypy && \
	$(RUN) ruff check --isolated --select F notebooks/*.ipynb && \
	$(RUN) nbstripout --verify notebooks/*.ipynb

bench:  ## speed beside sentence-transformers; long, wants an idle machine   [ARGS=--quick]
	@py="$$($(PYTHON) bootstrap.py)" && "$$py" benchmarks/bench.py $(ARGS)

clean:  ## remove build/ and caches; never runs/
	@rm -rf build .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	@find src tests benchmarks -name __pycache__ -type d -exec rm -rf {} +
