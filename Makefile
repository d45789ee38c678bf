PYTHON ?= python3
VENV ?= .venv
LOCK ?= requirements.lock
CORES ?= all
# Paths and names, which may be somebody else's, reach a recipe by its environment, never as its text.
$(foreach name,STUDY CONFIG BASE A B FAIL FORM,$(eval override $(name) := $$(value $(name))))
BIN := $(abspath $(VENV))/bin
export STUDY CONFIG BASE A B FAIL FORM BIN VENV LOCK
export PATH := $(BIN):$(PATH)
SNAKEMAKE := snakemake --profile profiles/local --cores $(CORES)

.DEFAULT_GOAL := help
.PHONY: help env small-env configured unnamed named stored compared demo study report status cancel pack replay answers compare site published audit test test-newest test-slurm test-faults test-browser lint format docs example bench lock clean

help:
	@sed -n -e 's/^##@ \(.*\)/\n\1/p' -e 's/^\([a-z-]*\):.*## /  \1\t/p' \
	  $(firstword $(MAKEFILE_LIST)) | expand -t 16

# Snakemake finds executors among installed modules alone: ours too, in an environment of this folder.
##@ Measure
env: ## install the environment in .venv, unless it matches the lock file
	@for folder in "$$PWD" "$${XDG_CACHE_HOME:-$$HOME/.cache}"; do \
	  { mkdir -p "$$folder" && [ -w "$$folder" ]; } 2> /dev/null || { echo "error: $$folder cannot be written:" \
	  "clone into a folder of yours, or set XDG_CACHE_HOME to one"; exit 1; }; done
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 4))' \
	  || { echo "error: $(PYTHON) is older than Python 3.11.4: name a newer one, make env PYTHON=python3.12"; exit 1; }
	@cmp -s "$$LOCK" "$$VENV/requirements.lock" || { \
	  { [ -x "$$BIN/python" ] || $(PYTHON) -m venv "$$VENV"; } \
	  && { timeout 60 "$$BIN/python" -m pip index versions --retries 0 --timeout 4 pip > /dev/null 2>&1 \
	  || { echo "error: pip reaches no index of packages: connect to a network, or name one by PIP_INDEX_URL"; exit 1; }; } \
	  && "$$BIN/python" -m pip install --quiet --upgrade pip \
	  && "$$BIN/python" -m pip install --quiet --no-deps --disable-pip-version-check --require-hashes -r "$$LOCK" \
	  && cp "$$LOCK" "$$VENV/requirements.lock"; }
	@cd "$$VENV"/lib/python3*/site-packages && [ ! -d snakemake_executor_plugin_slurm ] \
	  || echo ../../../../workflow/plugins > slurm_study.pth

# What reads stored studies needs no PyTorch: a small environment of its own, unless .venv is there.
SMALL := $(if $(wildcard $(VENV)/requirements.lock),$(VENV),.venv-replay)
report status replay answers compare site published audit: export PATH := $(abspath $(SMALL))/bin:$(PATH)
small-env:
	@$(MAKE) --no-print-directory env VENV=$(SMALL) \
	  LOCK=$(if $(filter $(VENV),$(SMALL)),$(LOCK),requirements-replay.lock)

# Read by its name, as make -n would run a recipe's line with MAKE itself, and the study in it.
AGAIN = $(MAKE) --no-print-directory
# Before an environment is made.
configured:
	@[ -z "$$STUDY" ] || { echo "error: study takes its configuration as CONFIG=$$STUDY, not as STUDY"; exit 1; }
	@for file in "$$CONFIG" "$$BASE"; do [ -z "$$file" ] || [ -f "$$file" ] \
	  || { echo "error: there is no file $$file here: CONFIG and BASE name YAML files"; exit 1; }; done

unnamed:
	@[ -z "$$STUDY" ] || { echo "error: $(MAKECMDGOALS) reads results/, not STUDY=$$STUDY: make replay STUDY=$$STUDY reads a stored study"; exit 1; }

named:
	@[ -n "$$STUDY" ] || { echo 'error: $(MAKECMDGOALS) takes a study: make $(MAKECMDGOALS)' \
	  'STUDY=$(if $(filter audit,$(MAKECMDGOALS)),"folder ...",name), see make help'; exit 1; }

stored:
	@[ -z "$$STUDY" ] || [ -f "studies/$$STUDY/config.yaml" ] \
	  || { echo "error: studies/ has no study $$STUDY: there are" $$(ls studies/*/config.yaml 2> /dev/null | cut -d / -f 2); exit 1; }
	@[ -z "$$FORM" ] || sed -n 's/^\(\w*\):.*/\1/p' report/forms.yaml | grep -qx "$$FORM" \
	  || { echo "error: there is no form $$FORM: there are" $$(sed -n 's/^\(\w*\):.*/\1/p' report/forms.yaml); exit 1; }

compared:
	@[ -n "$$A" ] && [ -n "$$B" ] || { echo "error: compare takes two studies: make compare A=name B=name"; exit 1; }

demo: env ## run a small study on the CPU: results/report.html in minutes
	$(SNAKEMAKE) --configfile config/demo.yaml

study: configured ## run a study on this machine: config/config.yaml, or yours by CONFIG=mine.yaml
	@alone=; if [ -n "$$CONFIG" ] && grep -q 'command *:' "$$CONFIG"; then \
	  $(AGAIN) small-env && PATH="$$PWD/$(SMALL)/bin:$$PATH" \
	  && alone=$$(PYTHONPATH=workflow/scripts python -m scaling.config.stored \
	  "$${BASE:-config/scaling.yaml}" "$$CONFIG") || exit 1; fi; \
	  [ -n "$$alone" ] || { $(AGAIN) env && PATH="$$BIN:$$PATH" \
	  && PYTHONPATH=workflow/scripts python -m scaling.config.stored \
	  "$${BASE:-config/scaling.yaml}" "$$CONFIG"; } || exit 1; \
	  $(SNAKEMAKE) $${CONFIG:+--configfile "$${BASE:-config/scaling.yaml}" "$$CONFIG"}

report: unnamed small-env ## render the report of existing runs: results/partial/report.html
	flock Snakefile snakemake --nolock --cores 1 --config replay=results

status: unnamed small-env ## print the state of each run of the study in results/
	@PYTHONPATH=workflow/scripts python -m scaling.terminal.progress

cancel: ## cancel the Slurm jobs of this study
	@squeue --noheader --user="$$(id -u)" --format='%i|%Z' \
	  | HERE="$$(pwd -P)" awk -F'|' '$$2 == ENVIRON["HERE"] { print $$1 }' | xargs -r scancel

pack: named env ## store the study in results/ as data: make pack STUDY=name (FORCE=1 replaces)
	python workflow/scripts/study_pack.py --study="$$STUDY" $(if $(filter 1,$(FORCE)),--force True)

##@ Read, compare and judge
replay: named stored small-env ## rebuild a stored study's tables and report, without a GPU: make replay STUDY=name
	$(SNAKEMAKE) --config replay="$$STUDY"

answers: stored small-env ## write the lab's answers as Markdown: make answers STUDY=name (FORM=B5 or Q7: a course form's order)
ifdef STUDY
	$(SNAKEMAKE) --config replay="$$STUDY" -- "results/replay/$$STUDY/answers$${FORM:+-$$FORM}.md"
endif
	@file="results/$${STUDY:+replay/$$STUDY/}answers$${FORM:+-$$FORM}.md"; [ -f "$$file" ] && { [ -n "$$STUDY" ] \
	  || grep -qF "<title>Scaling study: $$(sed -n 's/^study: //p' results/config.yaml)<" results/report.html; } && echo "The answers are $$file" \
	  || { echo "error: no study is finished in results/, or another version finished it: make answers STUDY=name takes a stored one"; exit 1; }

compare: compared small-env ## compare two studies by configuration: make compare A=name B=name (FAIL=2%: an error if B is slower)
	@python workflow/scripts/compare_studies.py --a="$$A" --b="$$B" $${FAIL:+--fail="$$FAIL"}

site: small-env ## write all stored studies' reports for a web host: site/index.html
	@rm -rf site && mkdir site
	@echo '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Scaling studies</title><h1>Scaling studies</h1>' > site/index.html
	@for stored in studies/*/config.yaml; do name=$$(basename "$$(dirname "$$stored")"); page="replay/$$name/report.html"; \
	  echo "Replaying $$name"; $(SNAKEMAKE) --quiet --config replay="$$name" && install -D -m 644 "results/$$page" "site/$$page" \
	  && sed -n "s:.*<h1>\(.*\)</h1>.*:<p><a href=\"$$page\">$$name</a> \1</p>:p" "site/$$page" >> site/index.html; done; true
	@echo "The site is site/index.html"

published: small-env ## audit published studies: results/published.html
	@PYTHONPATH=workflow/scripts python -m grader.audit_studies $(patsubst %/timings.csv,%,$(wildcard studies/*/timings.csv)) --output results/published.html || [ $$? = 3 ]

audit: named small-env ## audit submitted studies: make audit STUDY="folder ..." (OPTIONS="--train-images 60000")
	@PYTHONPATH=workflow/scripts python -m grader.audit_studies "$$STUDY" $(OPTIONS) --output results/audit.html || [ $$? = 3 ]

##@ Work on the project
# Those that take longest begin, so that no worker waits for them at the end.
test: env ## run all tests but test-slurm, test-browser and test-faults
	python -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/workflow tests/snapshots tests/gpu tests/unit

test-newest: ## run the unit tests on the newest PyTorch, in .venv-newest
	$(PYTHON) -m venv .venv-newest
	sed 's|,*<.*||' requirements.in | .venv-newest/bin/python -m pip install --quiet --upgrade -r /dev/stdin
	PATH="$$PWD/.venv-newest/bin:$$PATH" python -m pytest -n 2 --dist loadfile tests/unit

test-slurm: env ## run tests on a local Slurm that they start; needs root
	python -m pytest -rs tests/slurm

test-faults: env ## run tests of kills and concurrent studies (KILLS=n at random)
	FAULTS_KILLS=$(or $(KILLS),20) python -m pytest -rs tests/faults

test-browser: env ## test all stored studies' reports in Chromium; pictures in tests/browser/output
	python -m pytest tests/browser

lint: env ## check format, lint and types
	ruff format --check .
	ruff check .
	snakefmt --check Snakefile rules workflow
	mypy
	snakemake --lint

format: env ## format all files
	ruff format .
	ruff check --fix .
	snakefmt Snakefile rules workflow

docs: env ## write generated files: keys in config/README.md, conda pins
	python docs/config_keys.py
	for one in study:requirements report:requirements-replay; do file=workflow/envs/$${one%:*}.yaml; \
	  sed -i '/^ *- pip:/q' "$$file"; \
	  sed -n 's/^\([a-z0-9_.-]*==.*\) \\$$/      - \1/p' "$${one#*:}.lock" >> "$$file"; done

example: ## write docs/h200x2.html and its picture (needs Chromium)
	$(MAKE) replay STUDY=h200x2
	cp results/replay/h200x2/report.html docs/h200x2.html
	chromium --headless --no-sandbox --hide-scrollbars --window-size=1280,800 \
	  --screenshot=docs/report.png "file://$(CURDIR)/docs/h200x2.html"

bench: env ## time the pipeline: planning, no-op runs, the demo (PARTS=…)
	PYTHONPATH=workflow/scripts:tests python tests/bench/bench.py $(PARTS)

lock: env ## resolve requirements*.in (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --upgrade requirements.in -o requirements.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --constraints requirements.lock requirements-replay.in -o requirements-replay.lock
	$(MAKE) docs

clean: ## delete everything that a study wrote
	rm -rf results logs resources .snakemake
