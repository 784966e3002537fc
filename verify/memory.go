package verify

import (
	"context"

	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Memory verifies a chain by SPECTRUM-03, in this order: bundles, order, references, forbidden
// artifacts. Like SPECTRUM-02 it ignores signatures.
func Memory(ctx context.Context, runs []*Run, watch Watch) error {
	if len(runs) == 0 {
		return &Reject{Code: ChainEmpty, Message: "the chain has no run"}
	}
	bundles := make([]resumed, len(runs))
	for i, run := range runs {
		b, err := resume(ctx, run, "", watch)
		run.Close()
		if err != nil {
			return rejectIn(err, run)
		}
		bundles[i] = b
	}
	if err := checkOrder(runs, bundles); err != nil {
		return err
	}
	if err := checkReferences(runs, bundles); err != nil {
		return err
	}
	for _, run := range runs {
		err := run.forbiddenArtifact()
		run.Close()
		if err != nil {
			return rejectIn(err, run)
		}
	}
	return nil
}

// checkOrder requires completed_at to ascend strictly between two consecutive runs that both have
// it, and to be RFC 3339 wherever it exists.
func checkOrder(runs []*Run, bundles []resumed) error {
	var o ordering
	for i, b := range bundles {
		value, ok := b.status.Get("completed_at")
		if reject := o.next(value, ok); reject != nil {
			return reject.in(runs[i].id)
		}
	}
	return nil
}

// ordering checks the runs of a chain one after another.
type ordering struct {
	before instant
	known  bool
}

// next is the verdict on the next run's completed_at, if it has one.
func (o *ordering) next(value canonjson.Value, dated bool) *Reject {
	known := o.known
	o.known = false
	if !dated {
		return nil
	}
	completed, err := rfc3339(value)
	if err != nil {
		return rejectField(ChainOrderViolation, bundle.Status, "completed_at", "completed_at is not an RFC 3339 time")
	}
	before := o.before
	o.before, o.known = completed, true
	if known && !completed.after(before) {
		return rejectField(ChainOrderViolation, bundle.Status, "completed_at", "the run was not completed after the run before it")
	}
	return nil
}

// checkReferences requires every input to be an output of the run itself or of an earlier one
// (section 3, rule 3).
func checkReferences(runs []*Run, bundles []resumed) error {
	available := map[string]bool{}
	for i, b := range bundles {
		for _, o := range b.outputs {
			available[o.name] = true
		}
		if err := inputsAre(available, b.taskSpec); err != nil {
			return err.in(runs[i].id)
		}
	}
	return nil
}

// inputsAre checks TASK_SPEC.inputs. A missing value, or one that is not an array of strings,
// refers to no output.
func inputsAre(available map[string]bool, taskSpec canonjson.Object) *Reject {
	inputs, ok := taskSpec.Get("inputs")
	if !ok {
		return nil
	}
	if !inputs.IsArray() {
		return rejectField(InvalidChainReference, bundle.TaskSpec, "inputs", "inputs is not an array")
	}
	for input := range inputs.Elements() {
		name, ok := input.Text()
		switch {
		case !ok:
			return rejectField(InvalidChainReference, bundle.TaskSpec, "inputs", "an input is not a string")
		case !available[name]:
			reject := rejectField(InvalidChainReference, bundle.TaskSpec, "inputs", "input %.200q is not an output of this run or an earlier one", name)
			reject.Details["path"] = name
			return reject
		}
	}
	return nil
}
