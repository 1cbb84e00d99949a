# Everything that is done with this project, by name. Needs Python 3.11, 3.12 or 3.13, a JDK 17 and make.
# to the shell, make or Java other letters of ASCII mean something: blanks, quotes, %, and a colon in a class path
ifneq ($(findstring *,$(shell pwd -P | LC_ALL=C tr -c '[:alnum:]/._=@+~\200-\377\n-' '*')),)
$(error the folder of the project is "$(CURDIR)", but its path may have letters, digits and /._=@+~- alone: move it)
endif
# The newest Python is taken; where no supported one works, any python3 runs the doctor, which says so.
# They are looked for once and only if a target needs one; each look starts three of them.
PYTHONS ?= $(eval PYTHONS := $$(shell bin/find-pythons))$(PYTHONS)
PYTHON ?= $(or $(firstword $(PYTHONS)),python3)
EPSJOIN_LAKE ?= file://$(CURDIR)/lake
DEMO_RUN ?= 2023-06-01

JOBS := .venv/.installed
AIRFLOW := .venv-airflow/.installed
TOUR := .venv-tour/.installed
JARS := .cache/jars/.fetched
CLASSES := .cache/classes/.made
DATABASE := .airflow/.migrated
AUDIT := .cache/audit/.installed
# bytecode of 18,473 files would take a minute of CPU (300 of them by compileall: 1.2 s); Python makes that of what it
# imports, and setup itself runs the jobs and Airflow once
# a lock has all that its packages need, as lint asks pip: it need not look for more
# what is not a wheel is built by the setuptools of requirements/pip.txt: pip would fetch any, and check no hash of it
PIP := bin/pip --disable-pip-version-check install --quiet --require-hashes --no-deps --no-compile --no-build-isolation
ifneq ($(PYTHONDONTWRITEBYTECODE),) # as in bin/spark-submit: every process would compile all that it imports
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/.cache/bytecode
endif
# not that of the person's shell, whose database it would upgrade
OWN_AIRFLOW := env -u AIRFLOW_HOME -u AIRFLOW__DATABASE__SQL_ALCHEMY_CONN -u AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC
VERSION := 'import sys; print("%d.%d" % sys.version_info[:2])'
# a setting of the person's shell must not reach a test; what one has compiled is not compiled again, whoever runs
TEST_ENV := env PYTHONPATH=$(CURDIR)/jobs NUMBA_CACHE_DIR=$(CURDIR)/.cache/numba
PYTEST := $(TEST_ENV) .venv/bin/python -m pytest

.PHONY: help setup installed doctor demo demo-backfill kernels test test-kernels test-algorithms test-rooms \
	test-uncompiled test-spark test-steps test-joins test-long test-dags test-end-to-end test-pythons test-snapshots \
	check lint audit kill-loop bench bench-plans bench-parts bench-spark bench-scaling bench-around bench-increments \
	bench-differ bench-embeddings bench-trees bench-ingest bench-bestmatch bench-progressive bench-windows \
	bench-index bench-first-pairs experiments docs screenshots lock clean cluster-up cluster-down up down tour \
	machine
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## the environments of jobs and Airflow, the Delta jars, an archive of the JVM's classes, Airflow's database
	+@$(SIDE_BY_SIDE) installed
SIDE_BY_SIDE = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,--jobs=2)
installed: $(JOBS) $(AIRFLOW) $(JARS) $(CLASSES) $(DATABASE)
	@:

doctor: ## what this machine has and what it lacks, each with a remedy
	@$(PYTHON) jobs/epsjoin/commands/doctor.py --lake $(EPSJOIN_LAKE)

demo: setup ## the whole pipeline on a real snapshot, by Airflow; ends in a report with pictures
	@$(OWN_AIRFLOW) EPSJOIN_LAKE=$(EPSJOIN_LAKE) bin/airflow run navaids $(DEMO_RUN)
	@bin/epsjoin show --lake $(EPSJOIN_LAKE) --dataset navaids --run $(DEMO_RUN)

demo-backfill: setup ## twelve real months by one back-fill, in MONTHS="2021-11-01 2023-06-01"; ends in a picture over time
	@$(OWN_AIRFLOW) EPSJOIN_LAKE=$(EPSJOIN_LAKE) bin/airflow backfill run navaids $(or $(MONTHS),2021-11-01 2023-06-01)
	@bin/epsjoin trend --lake $(EPSJOIN_LAKE) --dataset navaids

# those that wait for services and Airflow first, so that others work meanwhile; then the longest
LANES := test-end-to-end test-joins test-steps test-dags test-algorithms test-rooms lint

test: ## everything that CI checks, three lanes at a time, each as soon as what it needs is installed
	$(MAKE) --jobs=3 --keep-going --output-sync=target WHOLE=yes $(LANES)
	$(MAKE) test-pythons PYTHONS="$(filter-out $(PYTHON),$(PYTHONS))" TESTS=tests/test_wheel.py

ifdef WHOLE # or lanes and the archive's steps would compile the same kernels at the same time, and a cluster once more
test-algorithms test-rooms test-steps test-joins: kernels
test-steps test-joins: $(CLASSES)
$(CLASSES): | kernels
endif

kernels: $(JOBS) ## compile the kernels that tasks run, and pack them for the workers of a cluster (otherwise jobs do so when they need them)
	.venv/bin/python bin/ship.py .cache/ship > /dev/null

test-kernels: test-algorithms test-rooms ## kernels, algorithms, records, report: no Java (a session would not start), no Airflow

# with the examples, which call the same kernels: the other half would compile them at the same time
ALGORITHMS := tests/test_examples.py tests/kernels tests/local tests/differ
WITHOUT_JAVA := env JAVA_HOME=/nowhere $(PYTEST) -m "not spark and not end_to_end and not long"

test-algorithms: $(JOBS) ## the half of test-kernels that computes
	$(WITHOUT_JAVA) $(ALGORITHMS)

test-rooms: $(JOBS) ## its other half: records, contracts, tables, commands, report, documents
	$(WITHOUT_JAVA) $(foreach folder,$(ALGORITHMS) tests/dags tests/spark tests/end_to_end,--ignore $(folder))

test-uncompiled: $(JOBS) ## kernels as plain Python, which checks every index; takes minutes
	env NUMBA_DISABLE_JIT=1 $(PYTEST) tests/kernels

test-spark: test-joins test-steps ## the steps and what they are made of, each half on one local Spark session

# a session of its own for a third of them would be another 15 CPU seconds; these take about half
JOINS := $(addprefix tests/spark/,join bestmatch cluster neighbours points \
	$(addsuffix .py,$(addprefix test_,border frame_arguments frames strings trees)))

test-joins: $(JOBS) $(JARS) ## the half that joins: pairs, best matches, clusters, neighbours; of tables and of frames
	$(PYTEST) $(JOINS) -m "not long"

test-steps: $(JOBS) $(JARS) ## the half that reads, checks, compares and reports, and what all steps use
	$(PYTEST) tests/spark -m "not long" $(foreach path,$(JOINS),--ignore $(path))

test-long: setup ## what takes long and rarely finds more than make test: real kills, two runs at once, millions of nodes
	$(PYTEST) --ignore tests/dags -m long
	env EPSJOIN_EXAMPLES=all $(PYTEST) $(foreach folder,dags spark end_to_end,--ignore tests/$(folder)) -m "hypothesis and not long"

test-dags: $(AIRFLOW) ## DAGs, operator and wrapper, without Spark
	.venv-airflow/bin/python -m pytest tests/dags

test-end-to-end: $(if $(WHOLE),installed,setup) ## whole jobs by spark-submit, on one machine and on a cluster, the demo by Airflow
	$(PYTEST) tests/end_to_end -m "not long"

TESTS ?= tests/kernels tests/local tests/test_sklearn.py tests/test_sklearn_neighbours.py tests/test_public.py tests/test_wheel.py
test-pythons: ## the library on arrays under every supported Python on the PATH; PYTHONS="/usr/bin/python3.12 ..."
	for python in $(PYTHONS); do \
		place=.cache/library-$$($$python -c $(VERSION)) && \
		$(MAKE) --no-print-directory PYTHON=$$python $$place/.installed && \
		$(TEST_ENV) JAVA_HOME=/nowhere $$place/bin/python -m pytest -m "not long" $(TESTS) || exit; \
	done

check: lint ## lint, types, contracts, import rules, Dockerfile and compose file
	$(PYTEST) tests/contracts/test_odcs.py tests/contracts/test_sources.py \
		tests/contracts/test_source_checks.py tests/contracts/test_lists.py tests/contracts/test_tables.py

# without the tests of contracts, which are among those of test-rooms
lint: $(JOBS) $(AIRFLOW)
	.venv/bin/pip --disable-pip-version-check check
	.venv-airflow/bin/pip --disable-pip-version-check check
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	PYTHONPATH=jobs .venv/bin/lint-imports
	.venv/bin/mypy jobs/epsjoin jobs/*.py docs/*.py services/*.py bin/find_master.py bin/ship.py bin/vacuum.py
	.venv-airflow/bin/python -m mypy dags plugins bin/backfill.py bin/backfill_airflow.py bin/dag_checks.py bin/dag_commands.py bin/run_airflow.py bin/set_airflow_up.py bin/standalone.py
	.venv-airflow/bin/hadolint docker/Dockerfile
	.venv-airflow/bin/check-jsonschema --builtin-schema vendor.compose-spec docker/compose.yaml
	.venv-airflow/bin/check-jsonschema --schemafile data_contracts/standard/odcs-json-schema-v3.1.0.json data_contracts/*.odcs.yaml data_contracts/tables/*.odcs.yaml
	bin/epsjoin contract check

# strict: what could not be looked up is an error, not "nothing known"; an index without advisories fails
audit: $(AUDIT) ## known vulnerabilities of the locked packages (asks the package index); installs none of them
	for lock in requirements/*.txt; do .cache/audit/bin/pip-audit --strict --require-hashes --disable-pip \
		--progress-spinner off -r $$lock || failed=$$lock; done; test -z "$$failed"

test-snapshots: $(JOBS) ## what the guard says of real snapshots; FOLDER=... has a folder of CSV files per set
	EPSJOIN_SNAPSHOTS=$(abspath $(FOLDER)) $(PYTEST) tests/spark/ingest/test_guard_on_histories.py

kill-loop: setup ## whether jobs that are killed anywhere and run again leave the same tables; ROUNDS=30 SEED=0; up to a minute per round
	PYTHONPATH=jobs:tests .venv/bin/python -m survival --rounds $(or $(ROUNDS),30) --seed $(or $(SEED),0)

cluster-up: $(JOBS) $(AIRFLOW) $(JARS) ## a Spark cluster of a master and two workers on this machine: docs/clusters.md
	@bin/spark-cluster up

cluster-down: ## stop it
	@bin/spark-cluster down

up: $(JOBS) $(AIRFLOW) $(JARS) ## all services on this machine, without Docker, login on: docs/operate.md
	@bin/services up

down: ## stop them
	@bin/services down

tour: $(JOBS) $(AIRFLOW) $(JARS) $(TOUR) ## through Airflow in a headless browser, with pictures, into docs/pictures/tour; MONTHS="2023-03-01 2023-05-01"
	PYTHONPATH=tests .venv-tour/bin/python -m tour $(if $(MONTHS),--months $(MONTHS))

bench: $(JOBS) ## the library against scipy and scikit-learn, into docs/benchmarks/arrays.md; ONLY=cad16 ROUNDS=1 prints one
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-plans: $(JOBS) ## what the planner expects against what comes, into docs/benchmarks/planner.md; nothing is timed
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.plans

bench-parts: $(JOBS) ## how evenly the work of a join lies in its parts, into docs/benchmarks/planner.md; ONLY=skin prints one
	env OPENBLAS_NUM_THREADS=1 PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.parts $(if $(ONLY),--only $(ONLY))

bench-spark: $(JOBS) $(JARS) ## the join on Spark against cKDTree and MLlib, into docs/benchmarks/spark.md; ONLY=uni8 prints one
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.spark.join $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-scaling: $(JOBS) $(JARS) ## how the steps treat large data, on cad16L with lowered limits, into docs/benchmarks/scaling.md
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.spark.scaling

bench-increments: $(JOBS) $(JARS) ## what the steps cost by increment and when all points are joined, into docs/benchmarks/increments.md; ONLY=uni8 ROWS=20000 prints a small one
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.spark.increments $(if $(ONLY),--only $(ONLY)) $(if $(ROWS),--rows $(ROWS)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-around: setup ## what each step costs by spark-submit, into docs/benchmarks/around.md; ONLY=navaids prints one, AGAINST=folder compares
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.spark.around $(if $(ONLY),--only "$(ONLY)") $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(AGAINST),--against $(AGAINST))

bench-bestmatch: $(JOBS) ## best matches against NumPy, cKDTree, DuckDB if it is there and pandas, streams, and the figures on MatWin, into docs/benchmarks/bestmatch.md; SCALE=10 ROUNDS=1 prints
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.bestmatch $(if $(SCALE),--scale $(SCALE)) $(if $(ROUNDS),--rounds $(ROUNDS))
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.matwin $(if $(SCALE),--scale $(SCALE)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-progressive: $(JOBS) ## joins larger than memory against other programs, an anti join, the running estimate, into docs/benchmarks/progressive.md; ONLY=peers prints one
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.progressive $(if $(ONLY),--only $(ONLY)) $(if $(SEEDS),--seeds $(SEEDS))

bench-windows: $(JOBS) ## windows against counting and joining everything again, and the paper's structures by what they look at, into docs/benchmarks/windows.md; SCALE=10 ROUNDS=1 prints
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.windows $(if $(SCALE),--scale $(SCALE)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-first-pairs: $(JOBS) $(JARS) ## a join of frames that adds its pairs every second against one that adds all at once; what progress messages cost; ONLY=cad16L ROUNDS=1; prints
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.spark.first_pairs $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-index: $(JOBS) ## an index that is kept against SciPy's tree: one query, 10 rows, 1,000 rows, into docs/benchmarks/index.md; ROUNDS=1 prints
	env OPENBLAS_NUM_THREADS=1 PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.index $(if $(ROUNDS),--rounds $(ROUNDS))

bench-embeddings: $(JOBS) ## joins and nearest neighbours of embeddings against a plain product of matrices, into docs/benchmarks/embeddings.md; ROWS=5000 prints a small one
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.embeddings $(if $(ROWS),--rows $(ROWS)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-trees: $(JOBS) ## trees: filters of the papers, growth, and comparisons against APTED and rapidfuzz if they are installed, into docs/benchmarks/trees.md; TREES=1000 prints
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.trees $(if $(TREES),--trees $(TREES))

bench-differ: $(JOBS) ## differentials by every method, against the paper's figures, into docs/benchmarks/differ.md; SCALE=16 ROUNDS=1 prints
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.differ $(if $(SCALE),--scale $(SCALE)) $(if $(ROUNDS),--rounds $(ROUNDS))

experiments: $(JOBS) ## the dissertation's figures rerun, with verdicts and counts that are kept, into docs/experiments.md; ONLY=fig3.10 prints one
	env OPENBLAS_NUM_THREADS=1 PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.experiments $(if $(ONLY),--only $(ONLY)) $(if $(KEEP),--keep)

bench-ingest: setup ## what reading a row costs against pyarrow and pandas, into docs/benchmarks/ingest.md; ONLY="JSON lines, 16 numbers" prints one
	PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.spark.ingest $(if $(ONLY),--only "$(ONLY)") $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ROWS),--rows $(ROWS))

docs: $(JOBS) ## docs/api.md from the docstrings, pictures in docs/library.md and docs/best-matches.md from their lines
	PYTHONPATH=jobs .venv/bin/python docs/build_api.py
	PYTHONPATH=jobs .venv/bin/python docs/draw_library.py
	PYTHONPATH=jobs .venv/bin/python docs/draw_bestmatch.py

screenshots: $(JOBS) ## the demo's report at two widths and its pictures, into docs/pictures; after make demo, with chromium
	PYTHONPATH=jobs .venv/bin/python docs/draw_report.py --lake $(EPSJOIN_LAKE) --run $(DEMO_RUN)

lock: ## new lock files from requirements/*.in (asks the package index)
	$(PYTHON) -m venv .cache/lock && .cache/lock/bin/pip install --quiet uv
	for name in pip jobs airflow library audit tour; do .cache/lock/bin/uv pip compile --quiet --upgrade \
		--universal --python-version 3.11 --generate-hashes --no-annotate --no-header requirements/$$name.in -o requirements/$$name.txt || exit; done

clean: ## delete environments, caches, the services' database and all tables in lake/
	if [ -x .venv-airflow/bin/python ]; then bin/services down && bin/spark-cluster down; fi
	rm -rf .venv .venv-airflow .venv-tour .cache .airflow .services lake

# an environment of another Python is made anew: two in one folder would be neither
define install
	@test -e $(@D)/bin/python$$($(PYTHON) -c $(VERSION)) || rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/$(PIP) -r requirements/pip.txt
	DIST_EXTRA_CONFIG=$(CURDIR)/requirements/wheels.cfg $(@D)/$(PIP) -r $<
	@touch $@
endef

machine:
	@$(PYTHON) jobs/epsjoin/commands/doctor.py --machine --quiet

$(JOBS): requirements/jobs.txt requirements/pip.txt | machine
	$(install)

$(AIRFLOW): requirements/airflow.txt requirements/pip.txt | machine
	$(install)

$(AUDIT): requirements/audit.txt requirements/pip.txt | machine
	$(install)

.cache/library-%/.installed: requirements/library.txt requirements/pip.txt
	$(install)

$(TOUR): requirements/tour.txt requirements/pip.txt | machine
	$(install)

$(JARS): conf/delta-jars.sha256 $(JOBS)
	env -u DELTA_JARS -u SPARK_JOB_VENV bin/fetch-delta-jars
	@touch $@

# jobs start without it, too, only later; bin/class-archive says what is wrong
$(CLASSES): bin/class-archive $(JOBS) $(JARS)
	env -u DELTA_JARS -u SPARK_JOB_VENV bin/class-archive make
	@touch $@

$(DATABASE): $(AIRFLOW) conf/pools.json
	$(OWN_AIRFLOW) bin/airflow setup > /dev/null
	@touch $@
