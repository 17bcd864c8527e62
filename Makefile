# Targets for people who work on sglang-plug. A clean clone needs python3.11 (or newer) and make, nothing else.
#
#   make venv                      .venv with the project and everything its ordinary suite needs
#   make demo                      scaffold -> install -> doctor -> resolve -> serve -> an answered request, and an image
#   make demo ENGINE=sglang        the same on real SGLang, on the CPU, in an environment of its own
#   make test / make test-sglang   the ordinary suite / the suite that needs real SGLang
#   make lint types bench docs
#
# torch comes as a CPU build. Where the default index only has CUDA builds, name the one with CPU builds:
#   make venv TORCH_INDEX=https://download.pytorch.org/whl/cpu

PYTHON ?= python3.11
VENV ?= .venv
ENGINE ?= standin
TORCH_INDEX ?=
WORKERS ?= 2
SUITE ?= tests
PYTEST_FLAGS ?=
RELEASES ?= 0.5.23 0.5.22 0.5.21

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
STAMP := $(VENV)/.sglang-plug-installed
ENGINE_OF = $$($(BIN)/python tests/sglang/install_engine.py $(1) $(if $(TORCH_INDEX),--torch-index $(TORCH_INDEX)))

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-sglang engines lint types bench docs format

help:
	@sed -n 's/^#\( \{0,1\}\)/\1/p' Makefile

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) is not there; name another: make PYTHON=python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --constraint constraints.txt --editable '.[dev,engine]'
	@touch $@

venv: $(STAMP)

demo: venv
ifeq ($(ENGINE),standin)
	@$(BIN)/python tests/e2e/demo.py
else ifeq ($(ENGINE),sglang)
	@engine=$(call ENGINE_OF,0.5.23) && $(BIN)/python tests/e2e/demo.py --python "$$engine"
else
	$(error ENGINE is standin or sglang, not '$(ENGINE)')
endif

test: venv
	$(BIN)/python -m pytest $(SUITE) -m 'not sglang' -n $(WORKERS) --dist loadfile $(PYTEST_FLAGS)

# One engine at a time: each loads a model runtime in several processes.
test-sglang: venv
	@set -e; for release in $(RELEASES); do \
	  engine=$(call ENGINE_OF,$$release); \
	  name=SGLANG_PLUG_REAL_PYTHON_$$(echo $$release | tr -d .); export "$$name=$$engine"; \
	  : "$${SGLANG_PLUG_REAL_PYTHON:=$$engine}"; export SGLANG_PLUG_REAL_PYTHON; \
	done; \
	$(BIN)/python -m pytest $(SUITE) -m sglang --timeout 900 --durations 10 $(PYTEST_FLAGS)

engines: venv
	@for release in $(RELEASES); do echo "$(call ENGINE_OF,$$release)"; done

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: venv
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: venv
	$(BIN)/mypy

bench: venv
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script; done

docs: venv
	$(PIP) --constraint constraints.txt --editable '.[docs]'
	$(BIN)/mkdocs build --strict --quiet
	$(BIN)/python docs/pictures/draw.py --check
