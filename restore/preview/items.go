package preview

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/blockhash"
)

// itemsIn numbers the outputs of a plan and what it removes, each run in the order of the paths.
func itemsIn(p *restore.Plan) []Item {
	items := make([]Item, 0, p.Files())
	at := 0
	for run := range p.Runs() {
		for o := range run.Bundle().Outputs() {
			items = append(items, Item{
				Path: run.Target(o.Path().String()), SHA256: o.Hash(), Bytes: o.Size(),
				Mode: fmt.Sprintf("%04o", run.Perm(o)), Time: timeText(o.ModTime()), run: at, path: o.Path().String(), output: o, perm: run.Perm(o), signedBits: run.Changes() != nil, signedMode: run.SignsModes(),
			})
		}
		at++
	}
	if removes := p.Removes(); len(removes) > 0 { // of a single run
		for _, path := range removes {
			items = append(items, Item{Path: path.String(), path: path.String(), Removed: true})
		}
		slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Path, b.Path) })
	}
	for n := range items {
		items[n].Number, items[n].ID = n+1, ItemID(n+1)
	}
	return items
}

// itemsOf sets the scope and the class of every output.
func (d *deciding) itemsOf(ctx context.Context) error {
	d.items = itemsIn(d.plan)
	for n := range d.items {
		i := &d.items[n]
		i.Scope, i.Reason = d.scopeOf(i.run, i.path)
		if found, ok := d.request.Followed.Match(i.path); ok {
			i.Follow = true
			i.Reason = joined(i.Reason, fmt.Sprintf("its name fits %q: %s", found.Pattern, found.Why))
		}
	}
	status := map[string]restore.Conflict{}
	for _, c := range d.restore.Conflicts() {
		status[c.Path] = c
	}
	return inorder.Each(ctx, 0, len(d.items), blockhash.NewHasher, func(h *blockhash.Hasher, n int) error {
		i := &d.items[n]
		found, taken := status[i.Path]
		t := d.restore.Target(i.Path)
		i.Runs = d.runsOf(i, taken || t != nil)
		divergence, isDiverged := d.restore.Divergence(i.Path)
		switch {
		case t != nil:
			i.stands(t)
			if isDiverged {
				i.diverges(divergence)
			}
			return nil
		case isDiverged:
			i.Class = Create
			i.diverges(divergence)
			return nil
		case !taken && i.Removed:
			i.Class, i.free, i.Reason = Identical, true, joined(i.Reason, "it is to be removed, but no longer exists")
			return nil
		case !taken:
			i.Class = Create
			return nil
		case d.restore.Replaces():
			i.Class = Blocked
			return nil
		}
		class, err := classOf(ctx, d.restore.Root(), found, i.output, h)
		i.Class = class
		return err
	})
}

// scopeOf returns the scope of an output: the declared one, or else the state of the project. A name that
// usually holds a secret is restricted in any case.
func (d *deciding) scopeOf(run int, path string) (scope.Scope, string) {
	declared, ok := d.claims[run].scopes.Of(path)
	found, secret := d.request.Privacy.Match(path)
	switch {
	case secret && declared != scope.RestrictedContext:
		if ok {
			d.undeclared = append(d.undeclared, path)
		}
		return scope.RestrictedContext, fmt.Sprintf("its name fits %q: %s", found.Pattern, found.Why)
	case ok:
		return declared, ""
	}
	return scope.ProjectState, ""
}

// Parts of the reason why an item may run by itself, in [Item.Runs].
const (
	Executable  = "it is executable"
	SetIDSource = "its source has the set-"
)

// runsOf returns why an output may run by itself: its name, or that it is executable; "" if it may not. A
// source with a set-id bit is meant to run with the rights of another user.
func (d *deciding) runsOf(i *Item, taken bool) string {
	why := ""
	if found, ok := d.request.Automatic.Match(i.path); ok {
		why = fmt.Sprintf("its name fits %q: %s", found.Pattern, found.Why)
	}
	if i.Removed {
		i.Reason = joined(i.Reason, why)
		return ""
	}
	if i.perm&0o111 != 0 {
		is := Executable
		if taken && isPlain(d.restore.Root(), i.Path) {
			is += ", which the existing file is not"
		}
		why = joined(is, why)
	}
	switch o := i.output.IDBits(); {
	case o == fs.ModeSetuid:
		why = joined(SetIDSource+"user-ID bit, which is not restored", why)
	case o == fs.ModeSetgid:
		why = joined(SetIDSource+"group-ID bit, which is not restored", why)
	case o != 0:
		why = joined(SetIDSource+"user-ID and set-group-ID bits, which are not restored", why)
	}
	return why
}

// isPlain reports whether the target is a regular file that is not executable.
func isPlain(root *pathsafe.Dir, target string) bool {
	path, err := pathsafe.Parse(target)
	if err != nil {
		return false
	}
	st, err := restore.Standing(root, path)
	return err == nil && st.Mode.IsRegular() && st.Bits()&0o111 == 0
}

// classOf compares the existing target with the output, by content.
func classOf(ctx context.Context, root *pathsafe.Dir, found restore.Conflict, o verify.Output, h *blockhash.Hasher) (Class, error) {
	path, err := pathsafe.Parse(found.Path)
	if err != nil {
		return "", err
	}
	if found.Failure().Code == restore.FinalizeFailed {
		return Blocked, nil
	}
	st, err := restore.Standing(root, path)
	switch {
	case err != nil:
		return Blocked, nil // a parent is not a directory
	case !st.Mode.IsRegular() || st.Size != o.Size():
		return Different, nil
	}
	f, _, err := root.OpenRegular(path, pathsafe.LinksBeneath)
	if err != nil {
		return Different, nil
	}
	defer f.Close()
	table, err := h.Sum(ctx, f, st.Size)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil || table.Digest() != o.Digest() {
		return Different, nil
	}
	return Identical, nil
}

// ItemID returns the ID of an item.
func ItemID(number int) string { return fmt.Sprintf("R-%03d", number) }
