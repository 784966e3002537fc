package undo

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// entry is what the judge reads of a line of the audit log.
type entry struct {
	Action   string            `json:"action"`
	Affected []string          `json:"affected"`
	Kind     string            `json:"kind"`
	Open     map[string]string `json:"open"`
	Rollback string            `json:"rollback"`
	Snapshot string            `json:"snapshot"`
	Reason   string            `json:"reason"`
}

func (w *fixture) auditLog(t testing.TB) []entry {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.site.Project.State, "audit.log"))
	harness.Must(t, err)
	var all []entry
	for line := range bytes.Lines(raw) {
		var e entry
		if json.Unmarshal(line, &e) == nil {
			all = append(all, e)
		}
	}
	return all
}

// chain are the ids of the savepoints that stand.
func (w *fixture) chain(t testing.TB) []string {
	t.Helper()
	var list struct {
		Savepoints []struct{ ID string } `json:"savepoints"`
	}
	w.run(t, &list, "savepoint", "list", "--json", w.site.Root)
	ids := []string{}
	for _, sp := range list.Savepoints {
		ids = append(ids, sp.ID)
	}
	return ids
}

// listed is a snapshot as the program lists it.
type listed struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Action string `json:"action"`
	Whole  bool   `json:"whole"`
}

func (w *fixture) list(t testing.TB) []listed {
	t.Helper()
	var list struct {
		Snapshots []listed `json:"snapshots"`
	}
	w.run(t, &list, "snapshot", "list", "--json")
	return list.Snapshots
}

// stored checks the store of snapshots without the program, and returns the ids of
// what is in it: every manifest is what its name says, and every content that one
// needs is there.
func (w *fixture) stored() ([]string, error) {
	store := filepath.Join(w.site.Project.State, "snapshots")
	manifests, err := filepath.Glob(filepath.Join(store, "roots", "*", "*"))
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, path := range manifests {
		_, id, ok := strings.Cut(filepath.Base(path), "-")
		raw, err := os.ReadFile(path)
		if sum := fmt.Sprintf("%x", sha256.Sum256(raw)); err == nil && (!ok || sum != id) {
			err = errors.New("it is not what its name says")
		}
		if err == nil {
			err = hasAll(store, raw)
		}
		if err != nil {
			return nil, fmt.Errorf("snapshot %q: %w", path, err)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}

// hasAll looks for every content that a manifest names.
func hasAll(store string, manifest []byte) error {
	lines := bufio.NewScanner(bytes.NewReader(manifest))
	for lines.Scan() {
		var e struct {
			Path string `json:"path"`
			Sum  string `json:"sha256"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return err
		}
		if e.Sum == "" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(store, "objects", e.Sum[:2], e.Sum))
		if err == nil && fmt.Sprintf("%x", sha256.Sum256(content)) != e.Sum {
			err = errors.New("its content is another")
		}
		if err != nil {
			return fmt.Errorf("%q: %w", e.Path, err)
		}
	}
	return lines.Err()
}

// records checks that everything that is recorded fits a state of the root: the
// chain of savepoints, the snapshots, the audit log; and that nothing is left beside
// the root.
func (w *fixture) records(t testing.TB, state harness.State) error {
	t.Helper()
	w.site.Project.CheckAudit(t)
	var errs []error
	if got := names(t, w.above()); !slices.Equal(got, w.aboveNames) {
		errs = append(errs, fmt.Errorf("beside the root are %q", got))
	}
	if got := w.chain(t); !slices.Equal(got, w.chains[state]) {
		errs = append(errs, fmt.Errorf("as %v: the savepoints are %q, not %q", state, got, w.chains[state]))
	}
	return errors.Join(append(errs, w.keeps(t), w.logged(t, state), w.lost(t))...)
}

// keeps checks that every snapshot that there was is there, whole, and listed.
func (w *fixture) keeps(t testing.TB) error {
	t.Helper()
	ids, err := w.stored()
	if err != nil {
		return err
	}
	var shown []string
	for _, s := range w.list(t) {
		shown = append(shown, s.ID)
	}
	slices.Sort(shown)
	if !slices.Equal(ids, shown) {
		return fmt.Errorf("the store has %q and lists %q", ids, shown)
	}
	for id := range w.snapshots {
		if !slices.Contains(ids, id) {
			return fmt.Errorf("snapshot %s is gone", id)
		}
	}
	return nil
}

// logged checks what the audit log says of an undo operation since the trial began: it has one
// end, which is that of the state of the root, and names the snapshot from before it.
func (w *fixture) logged(t testing.TB, state harness.State) error {
	t.Helper()
	ends := map[string]entry{}
	began := map[string]entry{}
	for _, e := range w.auditLog(t)[w.log:] {
		switch e.Kind {
		case "rollback_begin":
			began[e.Action] = e
		case "rollback":
			ends[e.Action] = e
		}
	}
	done := 0
	for id, b := range began {
		end, ok := ends[id]
		if !ok {
			return fmt.Errorf("undo operation %s has no end in the audit log", id)
		}
		if end.Rollback != b.Rollback || end.Snapshot == "" {
			continue // it was taken back: micro or emergency
		}
		done++
		if end.Snapshot != b.Snapshot || !slices.Equal(end.Affected, b.Affected) {
			return fmt.Errorf("undo operation %s began as %+v and ended as %+v", id, b, end)
		}
	}
	if want := int(state - harness.Before); w.command.after != nil && done != want {
		return fmt.Errorf("as %v: the audit log has %d undo operations that are complete", state, done)
	}
	return nil
}

// lost reports content that is lost: that of a file that was there before the trial, and is
// neither in the root nor in the store.
func (w *fixture) lost(t testing.TB) error {
	t.Helper()
	has := map[string]bool{}
	for _, thing := range w.picture(t) {
		has[thing.Content] = true
	}
	for name, thing := range w.site.Before {
		if !thing.Mode.IsRegular() || has[thing.Content] {
			continue
		}
		object := filepath.Join(w.site.Project.State, "snapshots", "objects", thing.Content[:2], thing.Content)
		if _, err := os.Stat(object); err != nil {
			return fmt.Errorf("what was in %q is lost: %w", name, err)
		}
	}
	return nil
}
