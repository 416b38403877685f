# PipeTune: `make` builds ./pipetune and ./pipetune-node; `make help` lists the rest.
VERSION := 0.1.0
CC ?= gcc
VARIANT ?= release
B := build/$(VARIANT)
prefix ?= /usr/local
# make V=1 shows the commands.
Q := $(if $(V),,@)

# Debian's HDF5 goes by two names.
HDF5 := $(shell pkg-config --exists hdf5-serial && echo hdf5-serial || echo hdf5)
PKGS := libuv jansson sqlite3 libcurl libmicrohttpd zlib netsnmp libpcre2-8 yaml-0.1 $(HDF5)
MISSING := $(foreach p,$(PKGS),$(if $(shell pkg-config --exists $(p) && echo yes),,$(p)))
# pkg-config knows nothing of libpfm: its header tells.
PFM := $(shell $(CC) $(CPPFLAGS) -E -include perfmon/pfmlib_perf_event.h -x c /dev/null >/dev/null 2>&1 && echo yes)
MISSING += $(if $(PFM),,libpfm4)
ifneq ($(strip $(MISSING)),)
ifeq ($(filter clean help,$(MAKECMDGOALS)),)
$(error missing libraries: $(MISSING); install their -dev packages, or run ./run-pipetune.sh setup)
endif
endif
WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
# gcc warns of every bounded snprintf; those here cut on purpose.
ifeq ($(findstring clang,$(CC)),)
WARN += -Wno-format-truncation
endif
CPPFLAGS += -D_GNU_SOURCE -Isrc -I. -DPIPETUNE_VERSION='"$(VERSION)"' $(shell pkg-config --cflags $(PKGS))
CFLAGS += -std=c11 -O2 -g $(WARN) -MMD -MP
LDLIBS += $(shell pkg-config --libs $(PKGS)) -lpfm -lm

ifneq ($(filter asan,$(VARIANT)),)
CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDFLAGS += -fsanitize=address,undefined
endif
ifneq ($(filter fuzz,$(VARIANT)),)
CFLAGS += -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
endif
ifneq ($(filter coverage,$(VARIANT)),)
CFLAGS += -O0 --coverage -fprofile-update=atomic
LDFLAGS += --coverage
endif
# Everything but the shipped variant can be killed at a named point (base/failpoint.h).
ifneq ($(VARIANT),release)
CPPFLAGS += -DPIPETUNE_FAILPOINTS
endif

# The node helper holds capabilities one day: it gets base, what counts events and reads this machine's meters, and its own
# folder, and links only libc, libm and libpfm.
NODE_SRC := $(wildcard src/node/*.c) src/base/err.c src/base/buf.c src/base/io.c src/base/ours.c src/base/strv.c src/base/failpoint.c src/base/proc.c src/base/array.c src/base/lease.c \
	src/base/base64.c src/base/beneath.c src/base/sha256.c src/base/socket_path.c src/base/needles.c src/base/num.c src/base/utf8.c src/base/wire.c src/app/report.c src/app/tell.c $(addprefix monitoring/,event_choice.c event_names.c events.c events_pfm.c events_probe.c events_table.c \
	reading.c sysfs_pmu.c counters.c features.c perf_ops.c procs.c procs_text.c sample_blob.c online.c perf_ring.c \
	code.c code_map.c) \
	$(addprefix monitoring/,meter.c meter_util.c meters_local.c cpu_time.c decimal.c estimate.c pcm.c pcm_csv.c perf_power.c rapl.c \
	rapl_zones.c zone_sum.c)
# Those of its parts that unit tests look at from within.
NODE_PARTS := $(addprefix src/node/,affinity.c blobs.c cgroup.c claim.c cpus.c folder.c house.c launches.c leased.c limits.c log.c log_files.c members.c meters.c port.c request.c sampler.c talk.c teller.c watch.c wish.c)
LIB_SRC := $(filter-out src/cmd/main.c,$(wildcard src/base/*.c src/core/*.c src/app/*.c src/search/*.c src/store/*.c src/live/*.c src/serve/*.c src/view/*.c src/cmd/*.c \
	bigdl/*.c clustering/*.c monitoring/*.c)) $(NODE_PARTS)
# Stop rules that are rows of the tests' table alone.
ifneq ($(VARIANT),release)
LIB_SRC += tests/stop_shuffle.c tests/stop_listen.c
endif
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
NODE_OBJ := $(NODE_SRC:%.c=$(B)/%.o)
BIN := $(B)/pipetune $(B)/pipetune-node

.PHONY: all check check-asan check-spark check-apps check-net check-k8s check-page check-clang lint fuzz fuzz-targets man install clean help tests test-tools bench test coverage compile_commands
all: pipetune pipetune-node

pipetune pipetune-node: %: $(B)/%
	@cp -f $< $@.new && mv -f $@.new $@

$(B)/libpipetune.a: $(LIB_OBJ)
	@rm -f $@
	@ar rcs $@ $^

$(B)/pipetune: $(B)/src/cmd/main.o $(B)/libpipetune.a
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/pipetune-node: $(NODE_OBJ)
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpfm -lm

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@$(if $(V),,echo "CC $<")
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# What `version` and a study's provenance name; empty outside of a checkout.
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null)
$(B)/src/live/provenance.o $(B)/src/cmd/version.o: $(wildcard .git/logs/HEAD)
$(B)/src/live/provenance.o $(B)/src/cmd/version.o: CPPFLAGS += -DPIPETUNE_COMMIT='"$(COMMIT)"'

# What pages refer to is within the program.
$(B)/src/serve/assets.o: $(wildcard src/serve/assets/*)

# --- tests ---------------------------------------------------------------------------------------------------------
UNIT := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(wildcard tests/unit/test_*.c))
INTEGRATION := $(patsubst tests/integration/%.c,$(B)/tests/integration/%,$(wildcard tests/integration/test_*.c))
TEST_TOOLS := $(patsubst tests/integration/%.c,$(B)/tests/integration/%,$(wildcard tests/integration/fake-*.c)) \
	$(B)/tests/integration/search-again $(B)/tests/net/nodes_client $(B)/tests/k8s/resize_client $(B)/tests/page/gen-store $(B)/tests/faults.so
# `make check` runs none of them; it builds them, so that they are there when somebody measures.
BENCH := $(patsubst tests/bench/%.c,$(B)/tests/bench/%,$(wildcard tests/bench/bench_*.c tests/bench/gen-*.c))
# Calls that fault_arm() (tests/fault.h) makes fail in turn, in our code alone.
WRAPPED := malloc calloc realloc strdup strndup write fsync rename open fork
WRAP := $(WRAPPED:%=-Wl,--wrap=%)

$(B)/tests/unit/test_%: $(B)/tests/unit/test_%.o $(B)/tests/fault.o $(B)/tests/fake_sysfs.o $(B)/tests/played.o $(B)/tests/bench/gen_timeline.o \
		$(B)/tests/bench/gen_profiles.o $(B)/libpipetune.a
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(WRAP) -o $@ $^ -lcmocka $(LDLIBS)

$(B)/tests/integration/test_%: $(B)/tests/integration/test_%.o $(B)/tests/integration/harness.o $(B)/tests/integration/sink.o $(B)/tests/fake_sysfs.o \
		$(B)/tests/bench/gen_profiles.o $(B)/libpipetune.a
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)

$(B)/tests/integration/fake-%: $(B)/tests/integration/fake-%.o
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

$(B)/tests/integration/search-again: $(B)/tests/integration/search-again.o $(B)/libpipetune.a
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Preloaded into whole processes: never sanitised itself, so that it may come first.
$(B)/tests/faults.so: tests/faults_preload.c
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -std=c11 -O2 -g $(WARN) -shared -fPIC -o $@ $< -ldl

$(B)/tests/net/%: $(B)/tests/net/%.o $(B)/libpipetune.a
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/tests/page/%: $(B)/tests/page/%.o $(B)/libpipetune.a
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/tests/k8s/%: $(B)/tests/k8s/%.o $(B)/libpipetune.a
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

test-tools: $(TEST_TOOLS)
tests: $(BIN) $(UNIT) $(INTEGRATION) $(TEST_TOOLS) $(BENCH)

# The failpoints live in the `check` variant; it is the same code otherwise.
check:
	@$(MAKE) --no-print-directory VARIANT=check tests
	@tests/run-tests build/check unit integration

check-asan:
	@$(MAKE) --no-print-directory VARIANT=asan tests
	@tests/run-tests build/asan unit integration

# One of them, or a few: `make test T=sched`.
test:
	@VARIANT=$(if $(filter release,$(VARIANT)),check,$(VARIANT)) tests/run-one "$(T)"

coverage:
	@$(MAKE) --no-print-directory VARIANT=coverage CC=gcc tests
	@tests/coverage build/coverage

# What make would run to compile each file, as clangd and others read it.
compile_commands:
	@$(MAKE) --no-print-directory --dry-run --always-make V=1 VARIANT=check tests fuzz-targets | tests/compile-commands >compile_commands.json.new
	@mv -f compile_commands.json.new compile_commands.json && echo "compile_commands.json: $$(grep -c '"file"' compile_commands.json) files"

check-spark: all
	@$(MAKE) --no-print-directory VARIANT=check tests
	@tests/run-tests build/check spark

# The studies of examples/ as they are: what they need is in ./run-pipetune.sh setup --light.
check-apps: all
	@$(MAKE) --no-print-directory VARIANT=check tests
	@tests/run-tests build/check apps

# Nodes over real ssh, in namespaces, and a real Slurm on loopback; needs root.
check-net:
	@$(MAKE) --no-print-directory VARIANT=check tests
	@tests/run-tests build/check net

# Kubernetes: etcd, a real kube-apiserver, a stand-in for kubelets, real Spark; needs root and ./run-pipetune.sh setup --kube.
check-k8s: all
	@$(MAKE) --no-print-directory VARIANT=check tests
	@tests/run-tests build/check k8s

# The page in a real browser: needs chromium.
check-page: all
	@$(MAKE) --no-print-directory VARIANT=check tests
	@tests/run-tests build/check page

check-clang:
	@$(MAKE) --no-print-directory VARIANT=clang CC=clang tests

lint:
	@tests/lint

# --- fuzzing: FUZZ_SECONDS for each target, FUZZ_JOBS of them at a time ------------------------------------------------
FUZZ_SECONDS ?= 60
FUZZ_JOBS ?= 2
FUZZ_CC ?= clang
FUZZ := $(patsubst tests/fuzz/%.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))
$(B)/fuzz_%: $(B)/tests/fuzz/fuzz_%.o $(B)/libpipetune.a
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(CFLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS)

fuzz-targets: $(FUZZ)
fuzz:
	@$(MAKE) --no-print-directory VARIANT=fuzz CC="$(FUZZ_CC)" fuzz-targets
	@tests/fuzz/run $(FUZZ_SECONDS) $(FUZZ_JOBS) $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

# --- benches: lines `name value unit [goal]`, and build/bench/NAME.json --------------------------------------------------
# Programs; what they share lies beside them.
$(B)/tests/bench/%: $(B)/tests/bench/%.o $(B)/tests/bench/gen_timeline.o $(B)/tests/bench/gen_profiles.o $(B)/libpipetune.a
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

bench-%: all $(TEST_TOOLS)
	@$(MAKE) --no-print-directory $(BENCH)
	@mkdir -p build/bench
	@tests/bench/$* $(B)

# Real jobs that have not been recorded yet are first: needs Spark.
bench-reuse: all
	@$(MAKE) --no-print-directory $(BENCH)
	@mkdir -p build/bench
	@tests/bench/reuse/run $(B)

# Searches on recorded learning curves, and on trainings where a python3 has numpy and scikit-learn. PEERS=1: beside other people's, which it installs.
bench-search: all
	@$(MAKE) --no-print-directory $(BENCH)
	@tests/bench/search/run $(B) $(if $(PEERS),--peers auto)

# What earlier studies teach, on the same curves.
bench-prior: all
	@tests/bench/search/prior $(B)

# How soon a search on real Spark finds what a grid finds, beside Optuna in a venv of its own.
bench-live-search: all
	@mkdir -p build/bench
	@tests/bench/live_search/run $(B)

# Several objectives beside Optuna, which is put into a virtual environment under build/bench.
bench-pareto: all
	@tests/bench/pareto/run $(B)

# The delivery beside other clients of a real InfluxDB.
bench-influx: all
	@$(MAKE) --no-print-directory $(BENCH)
	@tests/bench/influx/run $(B)

# The pages are printed by the program, and committed so that they can be read and installed without running anything.
man: all
	@rm -rf docs/man.new && mkdir docs/man.new
	@./pipetune help --man >docs/man.new/pipetune.1
	@set -e; for c in $$(./pipetune help --names); do ./pipetune help "$$c" --man >docs/man.new/pipetune-"$$c".1; done
	@rm -rf docs/man && mv docs/man.new docs/man

# Where Debian's shells look.
ZSH_FOLDER = $(if $(filter /usr,$(prefix)),vendor-completions,site-functions)
COMPLETION = $(DESTDIR)$(prefix)/share/bash-completion/completions/pipetune $(DESTDIR)$(prefix)/share/zsh/$(ZSH_FOLDER)/_pipetune \
	$(DESTDIR)$(prefix)/share/fish/vendor_completions.d/pipetune.fish

install: all
	install -d $(DESTDIR)$(prefix)/bin $(DESTDIR)$(prefix)/share/pipetune $(DESTDIR)$(prefix)/share/man/man1 $(dir $(COMPLETION))
	install -m 755 pipetune pipetune-node $(DESTDIR)$(prefix)/bin
	cp -r conf examples $(DESTDIR)$(prefix)/share/pipetune/
	install -d $(DESTDIR)$(prefix)/share/pipetune/python
	install -m 644 python/pipetune.py python/pyproject.toml $(DESTDIR)$(prefix)/share/pipetune/python
	install -d $(DESTDIR)$(prefix)/share/pipetune/bigdl
	cp -r bigdl/config bigdl/apps $(DESTDIR)$(prefix)/share/pipetune/bigdl/
	install -m 644 docs/man/*.1 $(DESTDIR)$(prefix)/share/man/man1/
	./pipetune completion bash >$(word 1,$(COMPLETION))
	./pipetune completion zsh >$(word 2,$(COMPLETION))
	./pipetune completion fish >$(word 3,$(COMPLETION))

clean:
	rm -rf build pipetune pipetune-node

help:
	@echo "make              ./pipetune and ./pipetune-node"
	@echo "make test T=sched one unit or integration test, or those whose names hold the word; VARIANT=asan: under ASan and UBSan"
	@echo "make check        unit and integration tests, fast and offline; check-asan: under ASan and UBSan"
	@echo "make check-spark  the same program on real Spark and BigDL (needs ./run-pipetune.sh setup)"
	@echo "make check-apps   the studies of examples/ (needs ./run-pipetune.sh setup --light)"
	@echo "make check-net    nodes over real ssh, in network namespaces, and a real Slurm on loopback (needs root)"
	@echo "make check-k8s    Kubernetes on loopback: a real API server, pods as processes (needs root and ./run-pipetune.sh setup --kube)"
	@echo "make check-page   the page in a real browser (needs chromium); pictures under build/page"
	@echo "make check-clang  everything built by clang;  make lint: format, includes, sizes, banned calls"
	@echo "make coverage     unit and integration tests again, and what share of the lines they pass, by folder"
	@echo "make compile_commands  compile_commands.json, for editors"
	@echo "make fuzz         every fuzz target for FUZZ_SECONDS (60) each, FUZZ_JOBS (2) at a time"
	@echo "make bench-core   figures as 'name value unit [goal]' lines, and build/bench/core.json"
	@echo "make bench-replay, bench-live, bench-settle: policies over synthetic timelines; on real Spark; what a live run settles on"
	@echo "make bench-simulator how many simulated trials are played per second, and what policies take in drawn worlds"
	@echo "make bench-pareto metric, seconds and joules together beside Optuna, on recorded curves with modelled prices"
	@echo "make bench-search searches and stop rules on recorded learning curves (tests/data/curves) and real trainings; PEERS=1: beside other people's"
	@echo "make bench-prior  what earlier studies teach a search: the same job again, and others"
	@echo "make bench-live-search how soon a search on real Spark finds what a grid finds, and beside Optuna: hours; goes on where it was"
	@echo "make bench-reuse  how well jobs are recognised by their profiles, on recorded jobs (recorded first) and synthetic ones"
	@echo "make bench-sampler the sampler beside perf stat, for BENCH_SECONDS (120) while CPUs idle and while they compute; its own cost"
	@echo "make bench-influx points per second and CPU beside other clients of a real InfluxDB (Debian's influxdb, influxdb-client)"
	@echo "make bench-experiment nine studies of two small jobs as they arrive, on real Spark under three policies: ten minutes"
	@echo "make bench-places what the driver costs for a trial on 1 to 1,000 hosts: what grows how"
	@echo "make bench-monitor what the monitor takes of a core and of memory at 1 Hz, for BENCH_SECONDS (60)"
	@echo "make man          docs/man anew, from the program's tables"
	@echo "make install      to DESTDIR and prefix (/usr/local);  make clean"

-include $(shell find build/$(VARIANT) -type f -name '*.d' 2>/dev/null)
.SECONDARY:
