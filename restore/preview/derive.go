package preview

import (
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Part is the approved part of one run, to be sealed as a derived bundle.
type Part struct {
	RunID   string
	Text    string // of the run, for people: see RunText
	Outputs []bundle.Known
	// Constraints are those of the derived TASK_SPEC.json: which bundle, which
	// preview and which approval it is derived from.
	Constraints map[string]any
	Changes     []byte            // the content of [bundle.ChangesFile]; nil where the candidate is not a change set
	Blocks      *blocktable.Table // of the outputs; nil where the run has none
}

// Parts returns the approved part of each run, in chain order. A run without an approved item has no part.
func (a *Approval) Parts() ([]Part, error) {
	var parts []Part
	at := -1
	next := 0
	for run := range a.preview.restore.Plan().Runs() {
		at++
		p := Part{RunID: run.Bundle().RunID(), Text: RunText(run.Bundle()), Constraints: a.derivedFrom(run)}
		var items []*Item
		for next < len(a.items) && a.preview.decided.items[a.items[next]-1].run == at {
			i := &a.preview.decided.items[a.items[next]-1]
			if !i.Removed {
				p.Outputs = append(p.Outputs, known(i.output.Path(), i.output))
			}
			items = append(items, i)
			next++
		}
		a.inherit(p.Constraints, items, func(i *Item) string { return i.path })
		if len(p.Outputs) == 0 {
			continue
		}
		if err := p.addSigned(run, items); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// addSigned adds the entries of these items in the change set and the block table of a run.
func (p *Part) addSigned(run *restore.Run, items []*Item) error {
	named := map[string]bool{}
	for _, i := range items {
		named[i.path] = true
	}
	if all := run.Changes(); all != nil {
		part, err := all.Only(func(path string) bool { return named[path] })
		if err != nil {
			return fmt.Errorf("the part of %s that is approved: %w", bundle.ChangesFile, err)
		}
		p.Changes, p.Constraints[bundle.ChangesMember] = part.Bytes(), part.Claim()
	}
	table, err := run.Bundle().Blocks()
	if err != nil || table == nil {
		return err
	}
	var keep []bool
	for o := range run.Bundle().Outputs() {
		keep = append(keep, named[o.Path().String()])
	}
	if p.Blocks, err = table.Only(func(i int) bool { return keep[i] }); err != nil {
		return fmt.Errorf("the part of %s that is approved: %w", bundle.BlocksFile, err)
	}
	return nil
}

func (a *Approval) derivedFrom(run *restore.Run) map[string]any {
	return map[string]any{"derived_from": map[string]any{
		"approval":    a.statement.String(),
		"bundle_root": run.Bundle().Root(),
		"preview_id":  a.preview.id,
	}}
}

// inherit adds the scopes that the signer or the review of names has given to items, so that a protected item
// stays protected in the derived run. Scopes that are restored by default are left out.
func (a *Approval) inherit(constraints map[string]any, items []*Item, path func(*Item) string) {
	scopes := map[string]string{}
	said := map[string]map[string]bool{} // by member: the values of the items' runs
	for _, i := range items {
		if !slices.Contains(scope.Defaults(), i.Scope) {
			scopes[path(i)] = string(i.Scope)
		}
		for _, member := range inherited {
			if said[member] == nil {
				said[member] = map[string]bool{}
			}
			said[member][a.preview.decided.claims[i.run].inheritable(member)] = true
		}
	}
	if len(scopes) > 0 {
		constraints[scope.Exact] = scopes
	}
	for _, bad := range badStatuses {
		if said["artifact_status"][bad] {
			said["artifact_status"] = map[string]bool{bad: true}
		}
	}
	for _, member := range inherited {
		if len(said[member]) > 1 { // a disagreement counts as undeclared: an identity layer then has no agent
			continue
		}
		for text := range said[member] {
			if text != "" {
				constraints[member] = text
			}
		}
	}
}

// inherited are the members of constraints that a derived run takes over.
var inherited = []string{"agent_id", "artifact_status", "privacy_level", "project", "title"}

// Claims returns the constraints of the savepoint of the approved restore that describe its files, by their
// paths beneath the restore root.
func (a *Approved) Claims() map[string]any {
	constraints := map[string]any{}
	var items []*Item
	for _, n := range a.approval.items {
		if i := &a.approval.preview.decided.items[n-1]; !i.Removed {
			items = append(items, i)
		}
	}
	a.approval.inherit(constraints, items, func(i *Item) string { return i.Path })
	return constraints
}

func known(path pathsafe.Path, o verify.Output) bundle.Known {
	return bundle.Known{Path: path, Bytes: o.Size(), Digest: o.Digest()}
}

// Targets returns the files that the approved restore puts in place, by their paths beneath the restore
// root. A savepoint is sealed over them.
func (a *Approved) Targets() ([]bundle.Known, error) {
	var outputs []bundle.Known
	for run := range a.restore.Plan().Runs() {
		for o := range run.Bundle().Outputs() {
			path, err := pathsafe.Parse(run.Target(o.Path().String()))
			if err != nil {
				return nil, fmt.Errorf("target %q: %w", run.Target(o.Path().String()), err)
			}
			outputs = append(outputs, known(path, o))
		}
	}
	return outputs, nil
}
