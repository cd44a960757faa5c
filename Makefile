# Every target sets up what it needs; a second run starts in seconds. `make help` lists them.
SHELL := /bin/sh
PYTHON ?= python3
PORT ?= 8787
SOAK_MINUTES ?= 240
ATTEMPTS ?= 200000
MINUTES ?= 60
VENV := .venv/bin/python
export PYTHONPATH := workers:.
export WRANGLER_SEND_METRICS := false
# Without compiled files every process of the tests would rewrite and compile all modules of the tests again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup chromium screenshots console-at-size demo dev cluster cluster-kills test test-host test-workerd soak attack kills endurance coverage mutants check format docs metrics metrics-page bench bench-recall bench-tiers eval lifecycle-rules deploy-dry-run clients lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The lock names all that is needed, so nothing is resolved: pip would look at a later release of a package that another one
# asks for with an extra, and refuse it because the lock does not have its hash.
.venv/.ready: locks/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit("Retain needs Python 3.11 or newer, and $(PYTHON) is %d.%d: make setup PYTHON=python3.12" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --clear .venv
	$(VENV) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r locks/dev.txt
	$(VENV) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# `npm install` and not `npm ci`: the lock names the platforms' packages that were available when it was written, and
# `npm ci` refuses a lock that lacks one. --no-save leaves the lock as it is. A user whose home is not theirs, as in a
# container, has npm's cache here.
node_modules/.ready: package.json package-lock.json
	@cache="$$(npm config get cache)"; mkdir -p "$$cache" 2>/dev/null; test -w "$$cache" || cache=.cache/npm; set -x; \
	npm install --no-save --no-audit --no-fund --loglevel=error --cache "$$cache"
	@touch $@

python_modules/pyvenv.cfg: locks/worker.txt tools/vendor.py | .venv/.ready
	$(VENV) -m tools.vendor
	@touch $@

setup: .venv/.ready node_modules/.ready python_modules/pyvenv.cfg ## install everything the other targets need
	@$(VENV) -m tools.precompile

chromium: .venv/.ready ## install the browser of the tests where this user may, or say how
	@$(VENV) -m tools.chromium

screenshots: setup chromium ## take the pictures of docs/console.md again, over the demo on the real workerd
	@$(VENV) -m tests.console.screenshots

console-at-size: setup chromium ## drive every screen of the console over 10,000 memories and 2,000 runs, and measure it
	@$(VENV) -m benchmarks.console

demo: setup ## run the order-triage scenario end to end on the real workerd; SERVE=1 keeps serving it for the console
	@$(VENV) -m retain.cli demo $(if $(SERVE),--serve)

dev: setup ## serve on $PORT (8787) in the foreground; GET /healthz answers when ready
	@$(VENV) -m retain.cli dev --port $(PORT)

cluster: setup ## serve by three nodes on this machine that share a bucket: PORT, PORT+1, PORT+2
	@$(VENV) -m tools.cluster --port $(PORT)

test: setup chromium ## run the tests, on the host and on the real workerd; LONG=1, or CI: with the long ones
	$(VENV) -m pytest -n 3 --dist loadscope $(if $(LONG)$(CI),,-m "not long") $(if $(REPORT),--junitxml $(REPORT) -o junit_duration_report=call)

test-host: setup ## run the tests that need no workerd
	$(VENV) -m pytest -n 2 -m "not workerd"

coverage: setup ## run the host tests and count the branches that they take; below the gate it fails
	$(VENV) -m pytest -n 2 -m "not workerd" --cov --cov-report=term

mutants: setup ## cut the wires between the parts, and see which cut no test notices: make mutants [MODULES="entry brief"] [SAMPLE=60] [BY_HAND=1] [RESUME=1]
	@$(VENV) -m tools.mutants $(MODULES) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(BY_HAND),--by-hand) $(if $(RESUME),--resume)

test-workerd: setup chromium ## run the tests that need workerd
	$(VENV) -m pytest -n 2 --dist loadscope -m workerd

soak: setup ## run the state machines marked soak for hours: make soak [SOAK_MINUTES=240] [SEED=1]
	@$(VENV) -m tests.soak --minutes $(SOAK_MINUTES) $(if $(SEED),--seed $(SEED))

attack: setup ## try to cross from one tenant to another: make attack [ATTEMPTS=200000] [SEED=1]
	@$(VENV) -m tests.attack --attempts $(ATTEMPTS) $(if $(SEED),--seed $(SEED))

kills: setup ## kill workerd at every fault point: make kills [MINUTES=60] [SEED=1]
	@$(VENV) -m tests.kills --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

cluster-kills: setup ## kill and stop nodes of a cluster while others write: make cluster-kills [MINUTES=60] [SEED=1]
	@$(VENV) -m tests.cluster --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

endurance: setup ## soak, attack and kill for so long, with one summary: make endurance [MINUTES=60] [SEED=1]
	@$(VENV) -m tests.endurance --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

check: setup ## check formatting, lint, types and the direction of imports
	$(VENV) -m ruff format --check .
	$(VENV) -m ruff check .
	$(VENV) -m mypy
	@$(VENV) -m tools.clients
	cd clients/python && ../../$(VENV) -m mypy
	node_modules/.bin/node node_modules/.bin/tsc --project console
	.venv/bin/lint-imports

format: setup ## format the code and apply safe fixes
	$(VENV) -m ruff check --fix --quiet . ; $(VENV) -m ruff format .

docs: .venv/.ready ## build the documentation site into .cache/site; a warning fails the build
	@$(VENV) -m tools.site

metrics: .venv/.ready ## print the measures of the code and the graph of its imports: make metrics [AT=commit]
	@$(VENV) -m tools.metrics $(if $(AT),--at $(AT))

metrics-page: .venv/.ready ## write the figures of docs/metrics.md and docs/testing.md again
	@$(VENV) -m tools.metrics --write

bench: setup ## compare in one run, tables for docs/performance.md; errors only: make bench QUICK=1
	@$(VENV) -m benchmarks.run $(if $(QUICK),--quick)

bench-recall: setup ## measure recall on conversation data: make bench-recall DATA=folder
	@test -n "$(DATA)" || { echo "give the data: make bench-recall DATA=folder-of-jsonl.gz"; exit 2; }
	$(VENV) -m benchmarks.recall $(DATA)

bench-tiers: setup ## measure reads and writes of the hot, warm and cold tier
	@$(VENV) -m benchmarks.tiers

eval: setup ## evaluate an agent on a dataset: make eval DATASET=refund_decision (a file, a name in evals/, or all)
	@test -n "$(DATASET)" || { echo "name the dataset: make eval DATASET=all"; exit 2; }
	@$(VENV) -m retain.cli eval $(DATASET)

lifecycle-rules: setup ## print the cold tier's R2 life cycle rules for `wrangler r2 bucket lifecycle set`
	@$(VENV) -m retain.cli lifecycle-rules

deploy-dry-run: setup ## build what `wrangler deploy` would upload, and print its size
	PATH="$(CURDIR)/node_modules/.bin:$$PATH" wrangler deploy --dry-run --outdir .cache/upload

clients: setup ## build the clients, with their generated parts, into .cache/clients/built
	@$(VENV) -m tools.clients --build

lock: setup ## write the locks again from pyproject.toml
	$(VENV) -m pip install --quiet --disable-pip-version-check --target .cache/uv uv
	.cache/uv/bin/uv pip compile -q --no-header --generate-hashes --universal --python-version 3.11 --group dev -o locks/dev.txt
	.cache/uv/bin/uv pip compile -q --no-header --generate-hashes --python-version 3.14 pyproject.toml --group worker -o locks/worker.txt
	.cache/uv/bin/uv pip compile -q --no-header --no-deps --generate-hashes --universal --python-version 3.11 locks/embedding.in -o locks/embedding.txt
	.cache/uv/bin/uv pip compile -q --no-header --no-deps --generate-hashes --python-version 3.12 locks/multilingual.in -o locks/multilingual.txt
	.cache/uv/bin/uv pip compile -q --no-header --generate-hashes --universal --python-version 3.11 locks/bench.in -o locks/bench.txt

clean: ## remove everything that the other targets made
	rm -rf .venv .build* .cache .wrangler node_modules python_modules wrangler.local.json wrangler.*.local.json
