# make            install what is missing, build bin/spectrum, say what to do next
# make test       everything a change must pass: lint, tests, a few seconds of fuzzing
# make test-long  the long sweeps as well (hours)
# make unit       only the tests with -race; PKG=./verify/... narrows it
# make page       the preview's page in headless Chromium, wide and narrow, light and dark
# make faults     kills, errors, full disks, power cuts and rivals, on the real binary, with
#                 their counts; FAULTS=./test/crash narrows it
# make conformance the suite of testdata/conformance against bin/spectrum; CONFORMANCE="-run ^06 -v"
#                 narrows it and names every case (make faults, and so make test, run it too)
# make lint       gofmt, vet, the other architecture, golangci-lint with staticcheck, govulncheck
# make fuzz       each fuzz target for FUZZTIME (3s), with the number of executions;
#                 FUZZPKG=./verify FUZZTARGET=FuzzBundle narrows it
# make bench      speed and memory against openssl, sha256sum, cp, go-fuse's loopback and
#                 restic mount, and a view of a million files (tens of minutes, 22 GiB)
# make picture    docs/demo.svg: what a terminal shows of a session of bin/spectrum
# make install    what was built, to PREFIX/bin (/usr/local), with manual pages, completion
#                 scripts, systemd units, and the helpers of mount(8) in SBINDIR (/sbin); below
#                 DESTDIR, if that is given
# make uninstall  remove what make install has put there, with the same variables
# make man        the manual pages, in bin/man: man -M bin/man spectrum
# make release    packages for every architecture in bin/release, with a list of what is in
#                 them and their checksums; ARCHES=amd64 narrows it
# make clean      remove what make built
#
# A long test is named TestLong..., and begins with
#     if os.Getenv("SPECTRUM_LONG") == "" { t.Skip("long: make test-long") }
# Any other test may read SPECTRUM_LONG=1 as leave to sweep more than it does by default.

SHELL    := /bin/bash
PKG      ?= $(shell go list ./... | grep -v /test/)
FAULTS   ?= ./test/...
FUZZTIME ?= 3s
# The tests that are about views: they run on one processor too. (Not the scripts:
# testscript leaves its directory behind when only some of them run.)
VIEWS    := Mount|View|Run|Status|Latest|Daemon|Notify|Live|Shelf
# The test that looks at the preview's page in a browser; not under the race detector.
PAGE     := TestPageInChromium
# Flags of the benchmark, such as BENCH="-only view -rounds 3" or
# BENCH="-markdown -svg docs/performance.svg".
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

# The version is part of the file's name, so that a new pin is a missing file.
TOOLS       := $(CURDIR)/.tools/bin
GOLANGCI    := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
GOVULNCHECK := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)

.DEFAULT_GOAL := all
.PHONY: all need-run need-test need-bench need-release build test test-long unit page faults conformance lint fuzz bench picture install uninstall man release clean

all: need-run build
	@echo
	@echo "built bin/spectrum; next:"
	@echo "    bin/spectrum demo /tmp/demo"

need-run:
	@scripts/need.sh run

need-test:
	@scripts/need.sh test

need-bench:
	@scripts/need.sh bench

need-release:
	@scripts/need.sh release

build:
	go build -o bin/spectrum ./cmd/spectrum

test: need-test build lint
	$(MAKE) --no-print-directory unit
	$(MAKE) --no-print-directory page
	$(MAKE) --no-print-directory faults
	scripts/leftovers.sh env GOMAXPROCS=1 go test -p 2 -count=1 -timeout 10m -run '$(VIEWS)' ./fusefs ./cmd/spectrum
	$(MAKE) --no-print-directory fuzz

unit: need-test
	scripts/leftovers.sh go test -race -count=1 -timeout 15m -skip '^$(PAGE)$$' $(PKG)

page: need-test
	CI_CHROMIUM=1 scripts/leftovers.sh go test -count=1 -run '^$(PAGE)$$' ./restore/preview

# Without the race detector: it would watch the tests, and not the binary.
faults: need-test build
	scripts/leftovers.sh scripts/counts.sh env SPECTRUM_BIN=$(CURDIR)/bin/spectrum \
	    go test -v -count=1 -timeout 15m $(FAULTS)

conformance: build
	go run ./test/conformance -bin bin/spectrum $(CONFORMANCE)

# The long tests run without the race detector: they are about real sizes.
test-long: test
	scripts/leftovers.sh env SPECTRUM_LONG=1 go test -race -count=1 -timeout 60m -skip '^TestLong' $(PKG)
	scripts/leftovers.sh scripts/counts.sh env SPECTRUM_LONG=1 SPECTRUM_BIN=$(CURDIR)/bin/spectrum \
	    go test -v -count=1 -timeout 600m -run '^TestLong' ./...
	$(MAKE) --no-print-directory fuzz FUZZTIME=60s

lint: $(GOLANGCI) $(GOVULNCHECK)
	@scripts/gofmt.sh
	go vet ./...
	GOARCH=arm64 go build ./...
	$(GOLANGCI) run ./...
	@scripts/vulncheck.sh $(GOVULNCHECK)

fuzz:
	scripts/leftovers.sh scripts/fuzz.sh $(FUZZTIME)

bench: need-bench build
	go build -o bin/loopback ./bench/loopback
	go build -o bin/bench ./bench
	bin/bench -bin bin/spectrum -loopback bin/loopback $(BENCH)

picture: build
	go run ./scripts/picture -bin bin/spectrum > docs/demo.svg.new
	mv docs/demo.svg.new docs/demo.svg

# They build nothing: whoever installs may be root, and have no Go.
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
