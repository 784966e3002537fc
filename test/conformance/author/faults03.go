package main

import (
	"fmt"

	"github.com/spectrumfs/spectrum/test/forge"
)

// The validator (SPECTRUM-02 section 3.1 step 2). Its fields are not signed.

func validator(field, how string, part int, code string, value any) fault {
	says := fmt.Sprintf("%s is %s", field, forge.Canonical(value))
	change := set(field, value)
	if how == "missing" {
		says, change = "OUTPUT_HASHES.json has no "+field, drop(field)
	}
	return fault{
		name:    slug(field) + "-" + how,
		says:    says,
		touches: []string{forge.OutputHashes + ":" + field},
		laws:    map[law]verdict{resume: in02(part, "step 2, "+field, code).naming(artifact(forge.OutputHashes))},
		signed:  func(r *run) { r.Edit(forge.OutputHashes, change) },
	}
}

func semver(how string, value any) fault {
	return validator("validator_semver", how, part02Semver, "VALIDATOR_UNSUPPORTED", value)
}

func buildID(how string, value any) fault {
	f := validator("validator_build_id", how, part02Build, "VALIDATOR_BUILD_ID_MISSING", value)
	v := f.laws[resume]
	f.laws[resume] = v.under("D12")
	return f
}

// otherBuild is a bundle of another build than the one that is asked for
// (SPECTRUM-02 section 5, strict mode only).
func otherBuild() fault {
	return fault{
		name:    "validator-build-id-other",
		says:    "the bundle is from build git:abc1234, and git:0000000 is asked for",
		touches: []string{forge.OutputHashes + ":validator_build_id"},
		laws: map[law]verdict{
			resume: in02(part02OtherBuild, "step 2, validator_build_id", "VALIDATOR_BUILD_MISMATCH").under("section 5"),
		},
		tree: func(d *draft, _ *run) { d.outside = append(d.outside, "--validator-build-id", "git:0000000") },
	}
}

// Order in time (SPECTRUM-03 section 3 rule 2; D12).

func completed(how, says string, value any) fault {
	return fault{
		name:    "order-" + how,
		says:    fmt.Sprintf("completed_at is %s, which %s", forge.Canonical(value), says),
		touches: []string{forge.Status + ":completed_at"},
		laws:    map[law]verdict{memory: in03(memoryOrder, "order in time", "CHAIN_ORDER_VIOLATION").naming(artifact(forge.Status))},
		signed:  func(r *run) { r.Edit(forge.Status, set("completed_at", value)) },
	}
}

// notAfter is a completed_at that is not after that of the run before. Which of
// the two runs is at fault the law does not say.
func notAfter(how, says string, value any) fault {
	f := completed(how, says, value)
	v := f.laws[memory]
	v.noRun = true
	f.laws[memory] = v
	return f
}

// References (SPECTRUM-03 section 3 rule 3; D12).

func inputs(how, says string, value any) fault {
	v := in03(memoryReferences, "references", "INVALID_CHAIN_REFERENCE")
	if list, ok := value.([]any); ok && len(list) > 0 {
		v.path, _ = list[len(list)-1].(string)
	}
	return fault{
		name:    "reference-" + how,
		says:    fmt.Sprintf("inputs is %s, which %s", forge.Canonical(value), says),
		touches: []string{forge.TaskSpec + ":inputs"},
		laws:    map[law]verdict{memory: v},
		signed:  func(r *run) { r.Edit(forge.TaskSpec, set("inputs", value)) },
	}
}
