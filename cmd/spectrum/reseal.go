package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// resealingKey returns the key that was named, or the operator's own. It makes none: a new key is trusted
// as little as the key of the run.
func (a *app) resealingKey(named string) (bundle.Key, error) {
	if named == "" {
		state, err := a.openState()
		if err != nil {
			return bundle.Key{}, err
		}
		defer state.Close()
		named = state.KeyPath()
	}
	return a.sealingKey(named)
}

// reseal makes a derived bundle with a block table of each bundle that has none, in a private directory of
// the box, and verifies it. The others stay as they are.
func (a *app) reseal(ctx context.Context, c *candidate, b *box, bundles []*verify.Bundle, key bundle.Key, watch verify.Watch) error {
	for i, from := range bundles {
		if table, err := from.Blocks(); table != nil || err != nil {
			continue // a table that cannot be used is an error of the push
		}
		in := strconv.Itoa(i)
		sealed, err := sealDerived(ctx, c.project, b, in, from, key)
		if err != nil {
			return fmt.Errorf("sealing %s again: %w", from.RunID(), err)
		}
		dir, err := b.dir.OpenDir(in)
		if err != nil {
			return err
		}
		runDir, err := dir.OpenDir(from.RunID())
		if err = errors.Join(err, dir.Close()); err != nil {
			return err
		}
		run := verify.RunIn(c.project, runDir, from.RunID())
		run.Expect(sealed.BundleRoot)
		bundles[i], err = verify.Strict(ctx, run, watch)
		if err = errors.Join(err, run.Close()); err != nil {
			return err
		}
		a.say("%s, bundle root %s, was sealed again with a block table: bundle root %s", from.RunID(), from.Root(), sealed.BundleRoot)
	}
	return nil
}

// sealDerived seals the outputs of a verified bundle again, with all that its TASK_SPEC.json claims, in the
// directory in of a box. The same bundle and key make the same derived bundle, so that a push can continue.
func sealDerived(ctx context.Context, project *pathsafe.Dir, b *box, in string, from *verify.Bundle, key bundle.Key) (bundle.Sealed, error) {
	opts := bundle.KnownOptions{
		In: b.dir, RunDir: filepath.Join(in, from.RunID()), Key: key, BuildID: buildID(), Now: from.Completed(),
	}
	for o := range from.Outputs() {
		opts.Outputs = append(opts.Outputs, bundle.Known{Path: o.Path(), Bytes: o.Size(), Digest: o.Digest()})
	}
	opts.Inputs, opts.Constraints = claimsOf(from.TaskSpec())
	derived := map[string]any{"bundle_root": from.Root()}
	if before, isDerived := opts.Constraints["derived_from"]; isDerived {
		derived["derived_from"] = before
	}
	opts.Constraints["derived_from"] = derived
	changes, err := from.Changes()
	if err != nil {
		return bundle.Sealed{}, err
	}
	if changes != nil {
		opts.Extra = map[string][]byte{bundle.ChangesFile: changes.Bytes()}
	}
	if opts.Blocks, err = bundle.TableOf(ctx, project, opts.Outputs, nil); err != nil {
		return bundle.Sealed{}, err
	}
	if opts.Blocks == nil {
		return bundle.Sealed{}, errors.New("its block table would be larger than any that is read")
	}
	if err := b.dir.Mkdir(in, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return bundle.Sealed{}, err
	}
	return bundle.SealKnown(ctx, opts)
}

// claimsOf returns the inputs and the constraints of a TASK_SPEC.json.
func claimsOf(taskSpec canonjson.Object) (inputs []string, constraints map[string]any) {
	value, _ := taskSpec.Get("inputs")
	if value.IsArray() {
		for one := range value.Elements() {
			if text, ok := one.Text(); ok {
				inputs = append(inputs, text)
			}
		}
	}
	value, _ = taskSpec.Get("constraints")
	object, _ := value.Object()
	constraints = map[string]any{}
	for name, value := range object.Members() {
		constraints[name] = jsontext.Value(value.Append(nil))
	}
	return inputs, constraints
}
