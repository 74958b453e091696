# Thin: the logic lives in the package.  Each target sets up what it needs (see bootstrap.py).
PROFILE ?= mini
OVERLAY ?=
DATASET ?=
DEVICE  ?=
FORCE   ?=
PYTHON  ?= python3
TORCH   ?=
export TORCH

# With `make -C` a relative DATASET starts from where make was called.
override DATASET := $(if $(DATASET),$(or $(wildcard $(DATASET)),$(wildcard $(PWD)/$(DATASET)),$(DATASET)))
HERE = $(dir $(lastword $(MAKEFILE_LIST)))

# A variable in small letters would be taken silently, and the default run.
$(foreach each,profile overlay dataset device force args,$(if $(filter command%,$(origin $(each))),\
$(error write $(shell echo $(each) | tr a-z A-Z)=$($(each)), in capitals)))

STUDY = $(PROFILE)$(if $(OVERLAY),+$(OVERLAY))
REPRO = py="$$($(PYTHON) '$(HERE)bootstrap.py')" && "$$py" -m repro.app.cli
RUN   = py="$$($(PYTHON) bootstrap.py)" && "$$py" -m

.DEFAULT_GOAL := help
.PHONY: help setup reproduce check tune publish site compare lab stability rehearse torture test lint bench clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup:  ## make the environment (.venv unless the active one already has the project)
	@$(PYTHON) bootstrap.py && echo "ready; next: make reproduce"

reproduce:  ## run a profile end to end   [PROFILE=mini OVERLAY= DATASET=name FORCE=1 TORCH=cpu]
	@$(REPRO) reproduce '$(STUDY)' $(if $(DATASET),--dataset '$(DATASET)') $(if $(FORCE),--force)

check:  ## what a profile would run and cost   [PROFILE=mini DEVICE=h100 CALIBRATE=1]
	@$(REPRO) check '$(STUDY)$(if $(DATASET),:$(DATASET))' $(if $(DEVICE),--device $(DEVICE)) \
	$(if $(CALIBRATE),--calibrate)

tune:  ## choose learning rates on the tuning split   [PROFILE=mini DATASET=name ARGS="--all"]
	@$(REPRO) tune '$(STUDY)$(if $(DATASET),:$(DATASET))' $(ARGS)

publish:  ## copy a finished build into notebooks/rendered, figures and results   [PROFILE=mini]
	@$(REPRO) publish '$(STUDY)$(if $(DATASET),:$(DATASET))'

site:  ## static pages of a finished build, else of what is published   [PROFILE=mini DATASET=name ARGS=--published]
	@py="$$($(PYTHON) bootstrap.py site)" && "$$py" -m repro.app.cli site '$(STUDY)$(if $(DATASET),:$(DATASET))' $(ARGS)

compare:  ## studies side by side, exponents and verdicts   [ARGS="mini midi --figure side.svg"]
	@$(REPRO) compare $(or $(ARGS),mini midi)

lab:  ## the notebooks in JupyterLab: change `profile = ...` under Parameters, run all cells
	@py="$$($(PYTHON) bootstrap.py lab)" && "$$py" -m jupyterlab --ServerApp.root_dir=. \
	--LabApp.default_url=/lab/tree/notebooks/04_laws.ipynb $(ARGS)

stability:  ## which verdicts depend on the root seeds: four more studies   [PROFILE=mini]
	@$(REPRO) stability '$(STUDY)$(if $(DATASET),:$(DATASET))'

rehearse:  ## the paper profiles on tiny copies of all they read, without network   [ARGS="paper --go-on"]
	@$(RUN) rehearsal $(ARGS)

torture:  ## a small sweep disturbed at random: is anything lost, wrong, made twice?   [ARGS="--minutes 60"]
	@$(RUN) torture $(ARGS)

test:  ## the tests, without the slow ones   [ARGS="-m slow"]
	@$(RUN) pytest -n auto --dist loadfile -m "not slow" $(ARGS)

lint:  ## format, lint, types, stripped notebooks
	@$(RUN) ruff format --check . && $(RUN) ruff check . && $(RUN) mypy && \
	$(RUN) ruff check --isolated --select F notebooks/*.ipynb && \
	$(RUN) nbstripout --verify notebooks/*.ipynb

bench:  ## speed beside sentence-transformers; long, wants an idle machine   [ARGS=--quick]
	@py="$$($(PYTHON) bootstrap.py)" && "$$py" benchmarks/bench.py $(ARGS)

clean:  ## remove build/ and caches; never runs/
	@rm -rf build .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	@find src tests benchmarks -name __pycache__ -type d -exec rm -rf {} +
