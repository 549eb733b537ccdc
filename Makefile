# SPDX-License-Identifier: Apache-2.0
# Every verb works on a bare Debian machine as root: it installs what it needs and says so.
SHELL := /bin/bash
.DEFAULT_GOAL := help
CGPU_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cgpu
export CGPU_CACHE
PY := .venv/bin/python
UV := $(CGPU_CACHE)/uv-0.13.9/bin/uv
COMPILE := $(UV) pip compile -q pyproject.toml --extra sandbox --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11
PYTEST := $(PY) -m pytest

.PHONY: help venv check test soak demo demo-node demo-docker cluster-up cluster-down proto image bench lock vm-run vm-shell clean
help: ## list the verbs
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

$(UV):
	@echo "venv: preparing uv in $(CGPU_CACHE)"
	@python3 -c 'import ensurepip, venv' 2>/dev/null || { echo "venv: installing python3-venv"; apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv; }
	@mkdir -p $(CGPU_CACHE) && python3 -m venv $(CGPU_CACHE)/uv-0.13.9 && $(CGPU_CACHE)/uv-0.13.9/bin/pip install -q uv==0.13.9

.venv/.stamp: requirements-dev.lock pyproject.toml | $(UV)
	@echo "venv: installing the locked dependencies into .venv"
	@test -x .venv/bin/python || $(UV) venv -q --python python3 .venv
	@$(UV) pip install -q --python .venv/bin/python --require-hashes -r requirements-dev.lock
	@$(UV) pip install -q --python .venv/bin/python --no-deps -e .
	@touch $@
venv: .venv/.stamp ## the development environment, in .venv

check: venv ## format, lint, types, import contracts, kernel style, chart lint, generated files
	@.ci/check

test: venv ## every test that CI runs, on real parts
	$(PYTEST)

soak: venv ## what takes longer: full products, churn, fuzzing; prints its figures
	$(PYTEST) tests/soak --override-ini testpaths=tests/soak
	CGPU_TEST_KUBERNETES=$$($(PY) -c 'from cgpu.sandbox.versions import OLDER_KUBERNETES as v; print(v)') $(PYTEST) tests/cluster

demo: venv ## a real Kubernetes with simulated cards, our chart, pods sharing cards
	@.venv/bin/cgpu sandbox demo

demo-node: venv ## a node with the kernel module in a VM: two pods share one simulated T4, each held to its part
	@.venv/bin/cgpu sandbox demo-node

demo-docker: venv ## the documentation's two containers in a real Docker, on the simulated driver in a VM
	@TOTAL_MIB=15109 $(PY) -m tests.vm.run tests/docker/demo.sh && echo "demo: ok"

cluster-up: venv ## the same cluster, left running: kubeconfig in .cluster/kubeconfig
	@.venv/bin/cgpu sandbox up --install

cluster-down: venv ## end it without a trace
	@.venv/bin/cgpu sandbox down

image: venv ## build the container image
	@.venv/bin/cgpu sandbox image

proto: venv ## generate cgpu/kubelet from proto/
	@$(PY) -m tests.proto

bench: venv ## benchmarks: figures as ratios against a baseline of the same run
	@$(PY) -m tests.bench

lock: $(UV) ## resolve the dependencies anew
	$(COMPILE) -o requirements.lock
	$(COMPILE) --group dev -o requirements-dev.lock

vm-run: venv ## SCRIPT=path [BRANCH=535] [CARDS=T4] [KERNEL=6.1]: run it in a VM with the simulated driver
	@$(PY) -m tests.vm.run $(SCRIPT)

vm-shell: venv ## a shell in that VM
	@$(PY) -m tests.vm.run --shell

clean: ## remove build outputs of this checkout (the cache stays)
	rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
