# make            install what is missing, build bin/spectrum, say what to do next
# make demo       the same, then the story of README.md from beginning to end, in a fresh
#                 temporary directory
# make test       what every change must pass, at most ten minutes on two cores: the lanes
#                 lint, scripts, unit, race, faults, views, page and fuzz, with the time of
#                 each (and that of tools, which is not counted), two at a time.
#                 Exhaustive tests try a sample, chosen by SEED
# make sweep      the same tests without sampling, and the lanes cross and mutants: at most
#                 50 minutes on two cores
# make test-long  what takes hours
#
# The lanes, each of which is a target too:
# make tools      install what is missing: packages by apt (needs root), the linters by go install
# make lint       gofmt, golangci-lint with vet and staticcheck, govulncheck
# make unit       the packages' own tests, in make test with -race where the package starts
#                 goroutines; PKG=./verify/... narrows it
# make scripts    the tests of cmd/spectrum on the built binary: scripts, mounts, documents
# make race       the concurrent tests of cmd/spectrum, and a sample of the scripts, with -race;
#                 in make sweep also a sample of the packages that unit tests without it
# make faults     kills, errors, full disks, power cuts, rivals, hostile bundles and the
#                 conformance suite on the built binary; FAULTS=./test/crash narrows it
# make views      the tests of views on one processor
# make page       the preview's page in headless Chromium, wide and narrow, light and dark
# make fuzz       each fuzz target for FUZZTIME, with the number of executions: in make test
#                 for 2s with inputs that are changed at random, in make sweep for 5s guided by
#                 what they reach; FUZZPKG=./verify FUZZTARGET=FuzzBundle narrows it
# make cross      build and vet for arm64
# make mutants    faults that were seeded by hand, each of which one named test must find
#                 (docs/mutants.md); MUTANTS="-run 07" narrows it
#
# make conformance the suite of testdata/conformance against bin/spectrum; CONFORMANCE="-run ^06 -v"
#                 narrows it and names every case
# make stress     COUNT (50) runs of the tests of PKG, each with another SEED, beside busy
#                 loops: what is flaky fails
# make bench      speed and memory against openssl, sha256sum, cp, go-fuse's loopback and
#                 restic mount, and a view of a million files (tens of minutes, 22 GiB)
# make coverage   docs/coverage.md: what the tests of the packages run (some minutes)
# make picture    docs/demo.svg: what a terminal shows of the story of make demo
# make names      docs/restricted-names.md: the names that a preview treats in a special way
# make transcripts  docs/transcripts.md: what preview and commit print on a terminal; as root
# make install    what was built, to PREFIX/bin (/usr/local), with manual pages, completion
#                 scripts, systemd units, and the helpers of mount(8) in SBINDIR (/sbin); below
#                 DESTDIR, if that is given
# make uninstall  remove what make install has put there, with the same variables
# make man        the manual pages, in bin/man: man -M bin/man spectrum
# make release    packages for every architecture in bin/release, with a list of what is in
#                 them and their checksums; ARCHES=amd64 narrows it
# make help       this list
# make clean      remove what make built or downloaded: bin, and the linters in .tools
#
# How much a test tries, and where a new one belongs: CONTRIBUTING.md.

SHELL    := /bin/bash
# The packages that take longest come first, so that none of them runs alone at the end.
PKG      ?= $(shell go list ./staging ./verify ./restore/snapshot ./restore/action ./... | grep -v -e /test/ -e /cmd/spectrum)
FAULTS   ?= $(addprefix ./test/,undo crash rival disk attack power) ./test/...
COUNT    ?= 50
# Which part of the exhaustive tests a run tries: it follows from the commit.
SEED     ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo 0)
export SEED
# One built binary for all tests that run the program, and one with the race detector.
export SPECTRUM_BIN      := $(CURDIR)/bin/spectrum
export SPECTRUM_RACE_BIN := $(CURDIR)/bin/spectrum-race
# The tests that are about views: they run on one processor too. (Not the scripts:
# testscript leaves its directory behind when only some of them run.)
VIEWS    := RunsAreVerifiedOnce|ChangedRunIsNoticed|ReadersAtWork|StatusUnderLoad|StatusCounts|DaemonHoldsNothing|DaemonKilled|RollbackRevokesViews|TestNotify|ViewSurvives|HangUp|ForegroundMount|NextViewOnTheSpot|InterruptWhileVerifying|MountManyReaders|MountVolumeSet|MountLive
# The concurrent tests of cmd/spectrum, and its scripts: the lane "race" of make test.
RACE     := Scripts|View|Daemon|Run|Status|Latest|Notify|Progress|Bar|Signal|Interrupt|Beside|Waits|Readers|Stuck|HostKey|Descriptors|Hang
# What watches the packages' own tests for races, and the packages that make test runs
# without it, since their own code starts no goroutines: the lane "race" of a sweep runs a
# sample of their tests with it. A sweep tries more values, and no more threads.
UNITRACE := -race
CALM     := $(addprefix github.com/spectrumfs/spectrum/,restore $(addprefix restore/,action audit \
              preview preview/report quarantine savepoint statement) verify/bundle verify/canonjson)
# A sweep runs all of them, and all that are about views on one processor; not those with
# the race detector that send a signal at every call, which the lane "scripts" sweeps.
ifneq ($(filter sweep long,$(SPECTRUM_TESTS)),)
VIEWS    := Mount|View|Run|Status|Latest|Daemon|Notify|Live|VolumeSet|Queue
RACE     := .
NORACE   := ^TestSignalDuringMount$$|^TestDoctorInterrupted$$
UNITRACE :=
RACECALM := env SPECTRUM_TESTS=sample
FUZZTIME ?= 5s
endif
NORACE   ?= ^$$
FUZZTIME ?= 2s
# Of two seconds the counters of coverage would take the most to build.
FUZZGUIDED ?= $(if $(filter 2s,$(FUZZTIME)),no,yes)
# The test that looks at the preview's page in a browser; not under the race detector.
PAGE     := TestPageInChromium
# Flags of the benchmark, such as BENCH="-only view -rounds 3".
BENCH    ?=
# Flags of the conformance suite's runner.
CONFORMANCE ?=
# What is installed, and where to.
PROGRAM  ?= bin/spectrum
PREFIX   ?= /usr/local
SBINDIR  ?= /sbin
DESTDIR  ?=
# What is released.
ARCHES   ?= amd64 arm64

# The linters that are too large for go.mod. staticcheck is one of those in golangci-lint.
GOLANGCI_VERSION    := v2.15.0
GOVULNCHECK_VERSION := v1.8.0
# A server of S3, for the sweep.
VERSITYGW_VERSION   := v1.8.0

# The version is part of the file's name, so that a new pin is a missing file.
TOOLS       := $(CURDIR)/.tools/bin
GOLANGCI    := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
GOVULNCHECK := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)
export VERSITYGW := $(TOOLS)/versitygw-$(VERSITYGW_VERSION)

# Git may refuse to look at a checkout of another user: then the program has no commit.
VCS := $(shell git rev-parse HEAD >/dev/null 2>&1 || echo -buildvcs=false)
# mkfs and losetup are not on every user's PATH.
export PATH := $(PATH):/usr/sbin:/sbin

ifneq ($(filter-out sample sweep long,$(SPECTRUM_TESTS)),)
$(error SPECTRUM_TESTS is "$(SPECTRUM_TESTS)", not sample, sweep or long)
endif

.DEFAULT_GOAL := all
.PHONY: all help demo need-run need-demo need-test need-bench need-release build race-build tools test sweep test-long unit scripts race views page faults mutants conformance lint cross fuzz stress bench coverage picture names transcripts install uninstall man release clean

all: need-run build
	@echo
	@echo "built bin/spectrum; next:"
	@echo "    bin/spectrum demo /tmp/demo"

# The comment at the top of this file.
help:
	@sed -n '/^# make/,/^$$/ { s/^# \{0,1\}//; p }' Makefile

demo: need-demo build
	@examples/agent-review/story.sh bin/spectrum

need-run:
	@scripts/need.sh run

need-demo:
	@scripts/need.sh demo

need-test:
	@scripts/need.sh test

need-bench:
	@scripts/need.sh bench

need-release:
	@scripts/need.sh release

build:
	go build $(VCS) -o bin/spectrum ./cmd/spectrum

race-build:
	go build $(VCS) -race -o bin/spectrum-race ./cmd/spectrum

# Vet is one of the linters, so go test need not run it again. Many packages wait more than
# they compute, so more of them run at a time than there are processors. Without debug
# information they are linked in two thirds of the time.
GOTEST := go test -vet=off -count=1 -ldflags=-w -p $(shell echo $$((2 * $$(nproc))))

test:
	@scripts/lanes.sh "make test" tools build race-build -- lint scripts unit race faults fuzz views page

sweep: tools $(VERSITYGW)
	@MAKEFLAGS= SPECTRUM_TESTS=sweep scripts/lanes.sh "make sweep" build race-build -- faults race unit scripts mutants fuzz views cross page

unit: RACED = $(filter-out $(CALM),$(shell go list $(PKG)))
unit: PLAIN = $(filter $(CALM),$(shell go list $(PKG)))
unit: need-test build
	@go list $(PKG) >/dev/null
	$(if $(RACED),scripts/leftovers.sh $(GOTEST) $(UNITRACE) -timeout 30m -skip '^$(PAGE)$$' $(RACED))
	$(if $(PLAIN),scripts/leftovers.sh $(GOTEST) -timeout 30m -skip '^$(PAGE)$$' $(PLAIN))

scripts: need-test build
	scripts/leftovers.sh $(GOTEST) -timeout 30m ./cmd/spectrum/...

race: need-test race-build
	scripts/leftovers.sh $(GOTEST) -race -timeout 60m -run '$(RACE)' -skip '$(NORACE)' ./cmd/spectrum/...
	$(if $(RACECALM),scripts/leftovers.sh $(RACECALM) $(GOTEST) -race -timeout 30m -skip '^$(PAGE)$$' $(CALM))

views: need-test build
	scripts/leftovers.sh env GOMAXPROCS=1 $(GOTEST) -timeout 30m -run '$(VIEWS)' ./fusefs/... ./cmd/spectrum

page: need-test
	CI_CHROMIUM=1 scripts/leftovers.sh $(GOTEST) -run '^$(PAGE)$$' ./restore/preview/report

# Without the race detector: it would watch the tests, and not the binary.
faults: need-test build race-build
	scripts/leftovers.sh scripts/counts.sh $(GOTEST) -v -timeout 60m $(FAULTS)

mutants: build
	scripts/leftovers.sh go run ./test/mutants $(MUTANTS)

conformance: build
	go run ./test/conformance -bin bin/spectrum $(CONFORMANCE)

# The long tests run without the race detector: they are about real sizes.
test-long: test sweep
	scripts/leftovers.sh env SPECTRUM_TESTS=long $(GOTEST) -race -timeout 60m -skip '^TestLong|^$(PAGE)$$' $(PKG)
	scripts/leftovers.sh env SPECTRUM_TESTS=long $(GOTEST) -timeout 600m -skip '^TestLong' ./cmd/spectrum/... ./test/...
	scripts/leftovers.sh scripts/counts.sh env SPECTRUM_TESTS=long \
	    $(GOTEST) -v -timeout 600m -run '^TestLong' ./...
	$(MAKE) --no-print-directory fuzz FUZZTIME=60s FUZZGUIDED=yes
	scripts/leftovers.sh go run ./test/mutants -matrix > docs/mutants.md.new
	mv docs/mutants.md.new docs/mutants.md

tools: need-test $(GOLANGCI) $(GOVULNCHECK)

lint: $(GOLANGCI) $(GOVULNCHECK)
	@scripts/gofmt.sh
	$(GOLANGCI) run ./...
	@scripts/vulncheck.sh $(GOVULNCHECK)

cross:
	GOARCH=arm64 go build ./...
	GOARCH=arm64 go vet ./...

stress: need-test build race-build
	scripts/leftovers.sh scripts/stress.sh $(COUNT) $(PKG)

fuzz:
	scripts/leftovers.sh env FUZZGUIDED=$(FUZZGUIDED) scripts/fuzz.sh $(FUZZTIME)

bench: need-bench build
	go build -o bin/loopback ./bench/loopback
	go build -o bin/bench ./bench
	bin/bench -bin bin/spectrum -loopback bin/loopback $(BENCH)

coverage:
	scripts/leftovers.sh scripts/coverage.sh > docs/coverage.md.new
	mv docs/coverage.md.new docs/coverage.md

picture: build
	go run ./scripts/picture -bin bin/spectrum > docs/demo.svg.new
	mv docs/demo.svg.new docs/demo.svg

names:
	go test ./restore/privacy -run '^TestPage$$' -write-names

transcripts: build
	SPECTRUM_BIN='$(CURDIR)/bin/spectrum' go test ./cmd/spectrum -run '^TestTranscripts$$' -write-transcripts

# They build nothing: root, who installs, may have no Go.
install uninstall:
	@PREFIX='$(PREFIX)' SBINDIR='$(SBINDIR)' DESTDIR='$(DESTDIR)' scripts/install.sh $@ '$(PROGRAM)'

man: build
	rm -rf bin/man
	bin/spectrum manual bin/man

release: need-release
	scripts/release.sh bin/release $(ARCHES)

clean:
	rm -rf bin .tools

$(GOLANGCI):
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(TOOLS)/golangci-lint $@

$(GOVULNCHECK):
	GOBIN=$(TOOLS) go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	mv $(TOOLS)/govulncheck $@

$(VERSITYGW):
	GOBIN=$(TOOLS) go install github.com/versity/versitygw/cmd/versitygw@$(VERSITYGW_VERSION)
	mv $(TOOLS)/versitygw $@
