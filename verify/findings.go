package verify

import (
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// claims are the requirements of the laws for bundles without signatures on a verified bundle,
// besides its outputs.
type claims struct {
	taskSpec        canonjson.Object
	completed       canonjson.Value // completed_at of STATUS.json
	dated           bool            // whether there is one
	semver, buildID string          // of OUTPUT_HASHES.json, which no signature covers
}

func (e *examination) claims() claims {
	hashes := e.artifacts[bundle.OutputHashes].object
	completed, dated := e.artifacts[bundle.Status].object.Get("completed_at")
	return claims{
		taskSpec:  e.artifacts[bundle.TaskSpec].object,
		completed: completed,
		dated:     dated,
		semver:    strings.Clone(textOf(hashes, "validator_semver")), // not to keep all of the artifact
		buildID:   strings.Clone(textOf(hashes, "validator_build_id")),
	}
}

// TaskSpec is TASK_SPEC.json, which is signed.
func (b *Bundle) TaskSpec() canonjson.Object { return b.claims.taskSpec }

// TaskID returns the task_id of TASK_SPEC.json, which is signed, or "". The run ID is the name of a
// directory, and is not signed.
func (b *Bundle) TaskID() string { return textOf(b.claims.taskSpec, "task_id") }

// Findings checks bundles that SPECTRUM-05 accepted, in chain order, against the further rules
// of the older laws: first the validator of SPECTRUM-02, section 3.1, step 2, then the order
// and the references of SPECTRUM-03; for each law the first finding of each run, in the order
// of the chain. SPECTRUM-05 has decided whether they may be restored; the findings are for the
// operator to weigh. Nothing is read again.
func Findings(bundles []*Bundle) []*Reject {
	var found []*Reject
	for _, b := range bundles {
		if reject := b.claims.validator(); reject != nil {
			found = append(found, reject.in(b.runID))
		}
	}
	return slices.Concat(found, orderOf(bundles), referencesOf(bundles))
}

func (c *claims) validator() *Reject { return supported(c.semver, c.buildID) }

// orderOf finds the runs that are not dated, or not after the run before.
func orderOf(bundles []*Bundle) []*Reject {
	var found []*Reject
	var o ordering
	for _, b := range bundles {
		if reject := o.next(b.claims.completed, b.claims.dated); reject != nil {
			found = append(found, reject.in(b.runID))
		}
	}
	return found
}

// referencesOf returns a reject for each run with an input that no earlier run has as an output.
func referencesOf(bundles []*Bundle) []*Reject {
	var found []*Reject
	available := map[string]bool{}
	for _, b := range bundles {
		for o := range b.Outputs() {
			available[o.Path().String()] = true
		}
		if reject := inputsAre(available, b.claims.taskSpec); reject != nil {
			found = append(found, reject.in(b.runID))
		}
	}
	return found
}
