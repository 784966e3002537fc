package main

import (
	"fmt"

	"github.com/spectrumfs/spectrum/test/forge"
)

// This file is the order of the laws: where a verdict stands, and in words.

// Steps of SPECTRUM-05 and -02: the chain itself, then its bundles.
const (
	chainItself = iota
	bundles
	chainRootStep
)

// Steps of SPECTRUM-03 (D12).
const (
	memoryBundles = bundles + iota
	memoryOrder
	memoryReferences
	memoryForbidden
)

// Steps of a restore (8.4, D1, D5).
const (
	stepRunIDs = iota
	stepGate
	stepArtifacts
	stepRoot
	stepRunDirs
	stepPaths
	stepPlan
	stepConflicts
	stepReserved
)

var phases05 = []string{
	1: "presence", 2: "parse", 3: "identity", 4: "bundle root", 5: "payload",
	6: "signature", 7: "proof", 8: "forbidden artifacts", 9: "outputs", 10: "run status",
}

// in05 is a verdict of SPECTRUM-05: phase, place inside it, code.
func in05(phase, part int, code string, details forge.Fields) verdict {
	return verdict{
		at:      place{step: bundles, part: phase*100 + part, words: fmt.Sprintf("phase %d (%s)", phase, phases05[phase])},
		code:    code,
		details: details,
		clause:  fmt.Sprintf("SPECTRUM-05 phase %d", phase),
	}
}

// until makes it open where up to this phase a verdict stands.
func (v verdict) until(phase, part int) verdict {
	v.at.until = phase*100 + part
	return v
}

// naming adds members of details that are not demanded.
func (v verdict) naming(given forge.Fields) verdict {
	v.given = given
	return v
}

// on puts a verdict at a path.
func (v verdict) on(path string) verdict {
	v.at.path = path
	return v
}

func (v verdict) under(clause string) verdict {
	v.clause += ", " + clause
	return v
}

// parts of SPECTRUM-02 (3.1).
const (
	part02Any = iota
	part02Status
	part02StatusField
	part02CMP01
	part02Hashes
	part02Semver
	part02Build
	part02OtherBuild
	part02Entries
	part02Outputs
)

func in02(part int, words, code string) verdict {
	return verdict{at: place{step: bundles, part: part, words: words}, code: code, clause: "SPECTRUM-02 section 3.1"}
}

func in03(step int, words, code string) verdict {
	return verdict{at: place{step: step, words: words}, code: code, clause: "SPECTRUM-03 section 3 and D12"}
}

var gateFailed = verdict{
	at:     place{step: stepGate, words: "the strict gate"},
	code:   "RESTORE_VERIFY_STRICT_FAILED",
	phase:  "PREFLIGHT",
	clause: "SPECTRUM-06 8.4.3 and D2",
}

func in06(step, part int, words, code string) verdict {
	phase := "PREFLIGHT"
	switch step {
	case stepPlan:
		phase = "PLAN"
	case stepConflicts:
		phase = "EXECUTE"
	case stepReserved:
		phase = "VERIFY"
	}
	return verdict{at: place{step: step, part: part, words: words}, code: code, phase: phase, clause: "SPECTRUM-06 section 8.4"}
}

// The first two steps after the gate (8.4.3, D2).
func proof06(part int, code string) verdict {
	return in06(stepArtifacts, part, "PROOF.json", code).under("D2")
}

func hashes06(part int, code string) verdict {
	return in06(stepArtifacts, 10+part, "OUTPUT_HASHES.json", code).under("D2")
}
