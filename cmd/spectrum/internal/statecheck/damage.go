package statecheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/records"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// A Flaw is damage among what is kept of restore roots, and the way out.
type Flaw struct {
	Path, What, Remedy string
	IsContent          bool     // of a snapshot, whose manifest is whole
	Lost               []string // ids of savepoints and snapshots that are lost, or not borne out; a person may accept that
	Accept             string   // how; "" where nothing is lost
}

// Steps are the remedy, and how the loss is accepted where there is one.
func (f *Flaw) Steps() string {
	if f.Accept == "" {
		return f.Remedy
	}
	return f.Remedy + "; " + f.Accept
}

// LostOf returns the ids of the savepoints and snapshots that are lost, or that the audit log does not
// bear out, each once.
func LostOf(flaws []Flaw) (ids []string) {
	for _, f := range flaws {
		ids = append(ids, f.Lost...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// varying matches the parts that differ between findings of one kind: ids, numbers and quoted
// names.
var varying = regexp.MustCompile(`"(\\.|[^"\\])*"|[0-9a-f]{8}[0-9a-f-]*|[0-9]+`)

// Fold returns each kind of finding once. Of more than three findings that differ only in ids and
// names and have the same remedy, it returns the first and the number of others.
func Fold(flaws []Flaw) (folded []Flaw) {
	const most = 3
	kinds := make([]string, len(flaws))
	count := map[string]int{}
	for i, f := range flaws {
		kinds[i] = varying.ReplaceAllString(f.What, "") + "\x00" + varying.ReplaceAllString(f.Remedy, "")
		count[kinds[i]]++
	}
	seen := map[string]bool{}
	for i, f := range flaws {
		n := count[kinds[i]]
		if n > most && seen[kinds[i]] {
			continue
		}
		if seen[kinds[i]] = true; n > most {
			f.What = fmt.Sprintf("%s; and %s of this kind", f.What, words.Count(n-1, "more finding"))
		}
		folded = append(folded, f)
	}
	return folded
}

// Fields are a flaw in a result.
func (f *Flaw) Fields() map[string]any {
	return map[string]any{"path": words.JSON(f.Path), "remedy": words.JSON(f.Steps()), "why": words.JSON(f.What)}
}

// Glance is how many bytes of contents, and of manifests, recover and the doctor read at
// most, the newest first: they are to be quick. "spectrum snapshot verify" reads all.
const Glance = 256 << 20

// SnapshotFlaws looks for damage among the snapshots of a root, or of all when root is "", and
// returns what it has read too.
func SnapshotFlaws(ctx context.Context, state *statedir.Dir, store *snapshot.Store, root string, budget snapshot.Budget) ([]Flaw, snapshot.Inspected, error) {
	in, err := store.Inspect(ctx, root, budget)
	if err != nil {
		return nil, snapshot.Inspected{}, err
	}
	contents, broken := map[string][]*snapshot.DamageError{}, map[string]*brokenSnapshot{}
	for _, f := range in.Found {
		if len(f.Damage.Names) > 0 {
			contents[f.Header.ID] = append(contents[f.Header.ID], f.Damage)
		}
	}
	isAccepted := records.Acceptances(state)
	var flaws []Flaw
	for _, f := range in.Found {
		flaw := Flaw{Path: filepath.Join(state.Path(), "snapshots", f.Damage.Path), What: f.Damage.Error()}
		mend := Mend(state.Path(), f.Damage)
		switch {
		case mend != "":
			flaw.Remedy, flaw.IsContent = mend, len(f.Damage.Names) > 0
		case errors.Is(f.Damage, snapshot.ErrOldVersion):
			flaw.Remedy = "an earlier spectrum reads it; else " + Aside(state, flaw.Path) + ", and take a new snapshot"
		case len(f.Damage.Names) > 0:
			id := f.Header.ID
			if broken[id] == nil {
				broken[id] = brokenContents(ctx, state, store, f.Header, contents[id])
			}
			flaw.IsContent, flaw.Remedy = true, broken[id].remedy
			if slices.Contains(broken[id].lost, f.Damage) {
				content := filepath.Base(f.Damage.Path)
				if isAccepted(content) {
					continue
				}
				flaw.Lost, flaw.Accept = []string{content}, AcceptText(state, f.Header.Root)
			}
		case f.Damage.Part != "":
			flaw.Remedy = PartRemedy(f.Damage) + "; else " + Aside(state, flaw.Path) + ": other snapshots can be restored all the same, and \"spectrum snapshot prune\" does not run next to it"
		default:
			flaw.Remedy = "check which users can write there; then " + Aside(state, flaw.Path) + ": other snapshots can be restored all the same, and \"spectrum snapshot prune\" does not run next to it"
		}
		flaws = append(flaws, flaw)
	}
	return flaws, in, nil
}

// A brokenSnapshot is one with damaged contents: the next steps, and the contents that are in no file of
// its root.
type brokenSnapshot struct {
	remedy string
	lost   []*snapshot.DamageError
}

func brokenContents(ctx context.Context, state *statedir.Dir, store *snapshot.Store, h snapshot.Header, damaged []*snapshot.DamageError) *brokenSnapshot {
	others := "snapshots without this content can be restored all the same"
	snap, err := store.Find(h.ID)
	path, unknown := state.RootPath(h.Root)
	if err != nil || unknown != nil {
		return &brokenSnapshot{remedy: others}
	}
	b := Broken{Snapshot: snap, Damaged: damaged, Path: path}
	lost := b.lost(ctx, store)
	return &brokenSnapshot{strings.Join(append(b.steps(lost), others), "; "), lost}
}

// PartRemedy is the next step for a damaged part of a manifest: a snapshot of unchanged names has
// the same part.
func PartRemedy(d *snapshot.DamageError) string {
	return fmt.Sprintf("check which users can write there; \"spectrum snapshot take %s\" writes the part again if nothing that it lists has changed since", words.Shell(d.Root))
}

// SavepointFlaws looks for damage among the savepoints of a root, or of all when root is "".
func SavepointFlaws(state *statedir.Dir, store *savepoint.Store, root string) ([]Flaw, error) {
	const remedy = "check which users can write there; then %s: \"spectrum snapshot restore\" and \"spectrum rollback --emergency\" do not need it"
	found, err := store.Survey(root)
	if err != nil {
		return nil, err
	}
	flaws := make([]Flaw, 0, len(found.Damaged))
	for _, d := range found.Damaged {
		mend := Mend(state.Path(), d)
		if mend == "" {
			mend = fmt.Sprintf(remedy, Aside(state, d.RunDir))
		}
		flaws = append(flaws, Flaw{Path: d.RunDir, What: d.Error(), Remedy: mend})
	}
	isAccepted := records.Acceptances(state)
	for _, sp := range slices.Concat(found.Standing, found.Retired) {
		if _, err := sp.Report(); err != nil && !isAccepted(sp.ID()) {
			const remedy = "the report of the commit is no longer proven; the commit can still be undone"
			flaws = append(flaws, Flaw{
				Path: sp.RunDir(), What: err.Error(), Remedy: cmp.Or(Mend(state.Path(), err), remedy),
				Lost: []string{sp.ID()}, Accept: AcceptText(state, sp.Root()),
			})
		}
	}
	return flaws, nil
}

// Savepoints opens those of the state directory.
func Savepoints(state *statedir.Dir) (*savepoint.Store, error) {
	place, err := state.Savepoints()
	if err != nil {
		return nil, err
	}
	return savepoint.In(place), nil
}

// Snapshots opens those of the state directory.
func Snapshots(state *statedir.Dir) (*snapshot.Store, error) {
	place, err := state.Snapshots()
	if err != nil {
		return nil, err
	}
	return snapshot.In(state.Root(), place)
}
