# The commands of this repository. `make help` lists them. Scripts in deploy/ and tests/ do the work.
.PHONY: help build torch serve test fuzz drills soak bench bench-papers bench-effective bench-cpu bench-clients docs format lint oracle cuda bundle package package-test clean
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z-]*\): ## /  make \1  \t/p' Makefile

build: ## set up the machine and build every program into build/bin
	@deploy/build

torch: ## the same, with penstock-shard-torch for --backend reference and --dtype float16 (fetches libtorch)
	@deploy/build --torch

serve: ## build, then serve the demo model (ARGS="--model-id PATH ..." for another)
	@deploy/serve $(ARGS)

test: ## build everything and run every test
	@tests/run

fuzz: ## libFuzzer on every reader of foreign bytes (ARGS="--seconds 60 --target http", tests/fuzz/run --help)
	@tests/fuzz/run $(ARGS)

drills: ## 1,000 servers whose processes die under load, against every token (ARGS="--seeds 1-1000")
	@tests/faults/run $(ARGS)

soak: ## the long tests: 50,000 seeds, every kernel shape, hostile clients (an hour)
	@tests/soak

bench: ## router cost per token and tokens/s, as JSON
	@tests/bench/run

bench-papers: ## the acceptance tests of the founding papers, as JSON (ARGS=--write: docs/benchmarks/papers.md)
	@tests/bench/papers/run $(ARGS)

bench-cpu: ## the CPU shard alone, against llama.cpp and over HTTP (ARGS="--quick", "--write", ...)
	@tests/bench/cpu/run $(ARGS)

bench-clients: ## guidellm and aiperf against the server (ARGS="--model FOLDER", "--write", ...)
	@tests/bench/clients/run $(ARGS)

bench-effective: ## compare nobatch, static and dynamic batching, with pictures (ARGS=FOLDER)
	@tests/bench/effective/run $(ARGS)

docs: ## build the documentation site into build/site and check its links
	@deploy/docs

format: ## rewrite C++ and Rust sources in the project's format
	@tests/checks/run --fix

lint: ## run the checks that .ci/run makes after the tests
	@tests/checks/run

oracle: ## regenerate the golden files with HF transformers (downloads 2.7 GB once; ARGS=--check, "--seed N")
	@tests/oracle/run $(ARGS)

cuda: ## fetch the CUDA compiler, compile penstock-shard-cuda and the GPU tests (no GPU needed)
	@deploy/build_cuda

bundle: ## the tarball alone (ARGS=--cuda: with the program and tests for GPUs)
	@deploy/bundle $(ARGS)

package: ## make the Debian package, tarball, wheel and OCI image in build/packages (ARGS=--deb, ...)
	@deploy/package $(ARGS)

package-test: ## make every package twice, and install, serve and remove each
	@tests/packages/run

clean: ## remove build folders (keeps .deps and .venv)
	rm -rf build build-asan build-clang build-fuzz build-tsan build-cuda
