package verify

import (
	"context"
	"slices"

	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// supportedSemvers are the validator versions that SPECTRUM-02 accepts.
var supportedSemvers = []string{"1.0.0", "1.0.1", "1.1.0"}

// resumeOrder is the order in which SPECTRUM-02 lists its artifacts.
var resumeOrder = []string{bundle.TaskSpec, bundle.Status, bundle.OutputHashes}

// Resume verifies one bundle by SPECTRUM-02. This law ignores signatures, so nothing can be
// restored from a bundle that it accepts. buildID is the required build of the bundle (the law's
// strict mode), or "".
func Resume(ctx context.Context, run *Run, buildID string, watch Watch) error {
	_, err := resume(ctx, run, buildID, watch)
	return err
}

// resumed is the part of an accepted SPECTRUM-02 bundle that SPECTRUM-03 uses.
type resumed struct {
	taskSpec, status canonjson.Object
	outputs          []declaration
}

// resume follows the procedure of section 3.1: presence of every artifact,
// then each artifact's form and content in turn, then the outputs.
func resume(ctx context.Context, run *Run, buildID string, watch Watch) (resumed, error) {
	if err := run.presentAll(resumeOrder); err != nil {
		return resumed{}, err
	}
	taskSpec, err := run.readComplete(bundle.TaskSpec)
	if err != nil {
		return resumed{}, err
	}
	status, err := run.readComplete(bundle.Status)
	if err != nil {
		return resumed{}, err
	}
	if err := resumeStatus(status); err != nil {
		return resumed{}, err
	}
	hashes, err := run.readComplete(bundle.OutputHashes)
	if err != nil {
		return resumed{}, err
	}
	if err := resumeValidator(hashes, buildID); err != nil {
		return resumed{}, err
	}
	outputs, err := resumeOutputs(hashes)
	if err != nil {
		return resumed{}, err
	}
	_, err = hashOutputs(ctx, run.project, outputs, outputPolicy{watch: watch})
	return resumed{taskSpec, status, outputs}, err
}

// presentAll finds the first artifact that is missing.
func (r *Run) presentAll(names []string) error {
	for _, name := range names {
		err := r.present(name)
		switch {
		case err == nil:
		case IsMachineFault(err):
			return err
		default:
			return rejectArtifact(BundleIncomplete, name, "%s", presenceError(err))
		}
	}
	return nil
}

// readComplete reads an artifact; a malformed one makes the bundle incomplete.
func (r *Run) readComplete(name string) (canonjson.Object, error) {
	a, err := r.read(name)
	switch {
	case err == nil:
		return a.object, nil
	case IsMachineFault(err):
		return canonjson.Object{}, err
	}
	return canonjson.Object{}, rejectArtifact(BundleIncomplete, name, "%s", err)
}

// resumeStatus is step 1 of section 3.1.
func resumeStatus(status canonjson.Object) error {
	if !fieldIs(status, "status", "success") {
		return rejectField(StatusNotSuccess, bundle.Status, "status", "status is not \"success\"")
	}
	if !fieldIs(status, "cmp01", "pass") {
		return rejectField(CMP01NotPass, bundle.Status, "cmp01", "cmp01 is not \"pass\"")
	}
	return nil
}

// resumeValidator is step 2 of section 3.1.
func resumeValidator(hashes canonjson.Object, want string) error {
	build := textOf(hashes, "validator_build_id")
	if reject := supported(textOf(hashes, "validator_semver"), build); reject != nil {
		return reject
	}
	if want != "" && build != want {
		reject := rejectField(ValidatorBuildMismatch, bundle.OutputHashes, "validator_build_id", "validator_build_id is not the requested one")
		reject.Details["expected"], reject.Details["actual"] = want, build
		return reject
	}
	return nil
}

// supported returns the objection of SPECTRUM-02 to a validator, nil for none.
func supported(semver, build string) *Reject {
	if !slices.Contains(supportedSemvers, semver) {
		return rejectField(ValidatorUnsupported, bundle.OutputHashes, "validator_semver", "validator_semver %q is not supported", semver)
	}
	if build == "" {
		return rejectField(ValidatorBuildIDMissing, bundle.OutputHashes, "validator_build_id", "validator_build_id is not a non-empty string")
	}
	return nil
}

// resumeOutputs finds the entries that step 3 checks.
func resumeOutputs(hashes canonjson.Object) ([]declaration, error) {
	value, _ := hashes.Get("hashes")
	object, ok := value.Object()
	if !ok {
		return nil, rejectField(BundleIncomplete, bundle.OutputHashes, "hashes", "\"hashes\" is missing or not an object")
	}
	outputs, err := declarationsOf(object)
	if err != nil {
		return nil, rejectField(BundleIncomplete, bundle.OutputHashes, "hashes", "a value of \"hashes\" is not a string")
	}
	return outputs, nil
}
