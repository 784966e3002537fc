package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// A Run is a run in a store whose signature was verified. Its outputs were not read.
type Run struct {
	store     *Store
	root      string
	runDir    pathsafe.Path
	plan      *plan
	listing   *verify.Listing
	changes   *bundle.Changes // nil without
	completed time.Time
}

// Runs lists the runs of the store in the order of their bundle roots. Nothing of them is checked.
func (s *Store) Runs(ctx context.Context) ([]Object, error) {
	listed, err := s.list(ctx, runsPrefix)
	runs := make([]Object, 0, len(listed))
	for _, o := range listed {
		o.Key = strings.TrimPrefix(o.Key, runsPrefix)
		if _, ok := parseID(o.Key); ok {
			runs = append(runs, o)
		}
	}
	return runs, err
}

// ErrAmbiguous means that a part of a bundle root does not say which run is meant.
var ErrAmbiguous = errors.New("it is ambiguous")

// Find finds the bundle root of a run by its first digits, or by "latest": the run that was stored last, by
// the clock of the store. The store lists its runs, so it can also lie about which one that is.
func (s *Store) Find(ctx context.Context, short string) (string, error) {
	runs, err := s.Runs(ctx)
	if err != nil {
		return "", err
	}
	var found []Object
	for _, run := range runs {
		switch {
		case short == latest && len(found) > 0 && run.Time.After(found[0].Time):
			found = append(found[:0], run)
		case short == latest && (len(found) == 0 || run.Time.Equal(found[0].Time)), short != latest && strings.HasPrefix(run.Key, short):
			found = append(found, run)
		}
	}
	switch len(found) {
	case 0:
		return "", &NoRunError{s.address, short}
	case 1:
		return found[0].Key, nil
	}
	return "", fmt.Errorf("store %s: %q: %w: %d runs, such as %s and %s", s.address, short, ErrAmbiguous, len(found), found[0].Key, found[1].Key)
}

// Open fetches the run directory of a run into dir, an empty directory of this user, as the one run of a
// project there, and verifies what its signature covers.
func (s *Store) Open(ctx context.Context, root string, dir *pathsafe.Dir) (*Run, error) {
	key := runsPrefix + root
	raw, err := s.whole(ctx, key, maxRun)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NoRunError{s.address, root}
	}
	if err != nil {
		return nil, err
	}
	r := &Run{store: s, root: root}
	if err := r.unpack(ctx, raw, dir); err != nil {
		if machine.IsOrdinary(err) || ctx.Err() != nil {
			return nil, err
		}
		return nil, &WrongError{s.address, key, err}
	}
	return r, nil
}

func (r *Run) unpack(ctx context.Context, raw []byte, dir *pathsafe.Dir) error {
	w := writer{root: dir}
	defer w.Close()
	var changes []byte
	err := readRun(ctx, raw, func(name string, content io.Reader) (err error) {
		if name == mapFile {
			if r.plan, err = parseMap(content); err != nil {
				return err
			}
			r.runDir, err = pathsafe.Parse(bundle.RunsDirs()[0] + "/" + r.plan.runID)
			return err
		}
		at, err := r.runDir.Child(name)
		if err != nil {
			return err
		}
		f, err := w.create(ctx, at, 0o666)
		if err != nil {
			return err
		}
		defer f.Close()
		if name == bundle.ChangesFile {
			if changes, err = io.ReadAll(content); err != nil {
				return err
			}
			content = strings.NewReader(string(changes))
		}
		if _, err = io.Copy(f, content); err != nil {
			return pathsafe.NoSpace(f, 1, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.verify(ctx, dir, changes)
}

// verify verifies the artifacts, and requires that they are those of the run that was named.
func (r *Run) verify(ctx context.Context, dir *pathsafe.Dir, changes []byte) error {
	runDir, err := dir.OpenParent(r.runDir, len(r.runDir.Components()))
	if err != nil {
		return err
	}
	run := verify.RunIn(dir, runDir, r.plan.runID)
	defer run.Close()
	if r.listing, err = verify.List(ctx, run); err != nil {
		return err
	}
	if r.listing.Root() != r.root {
		return fmt.Errorf("the signed run is another one, %s", r.listing.Root())
	}
	if len(r.plan.ends) != r.listing.Len() {
		return fmt.Errorf("%s has %d outputs, and %d are signed", mapFile, len(r.plan.ends), r.listing.Len())
	}
	err = r.plan.checkClaims(func(yield func([sha256.Size]byte) bool) {
		for e := range r.listing.Entries() {
			if !yield(e.Digest) {
				return
			}
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", mapFile, err)
	}
	r.completed, _ = run.ClaimedCompletion() // the same file, in a directory of this user
	digest, named, err := bundle.ChangesClaim(r.listing.TaskSpec())
	if err == nil && named && sha256.Sum256(changes) == digest {
		r.changes, err = bundle.ParseChanges(changes, func(yield func(string) bool) {
			for e := range r.listing.Entries() {
				if !yield(e.Path.String()) {
					return
				}
			}
		})
	}
	if err != nil {
		r.changes = nil // no verdict: the restore judges the file
	}
	return nil
}

// RunID is the name of the run directory. Nothing has signed it.
func (r *Run) RunID() string { return r.plan.runID }

// RunDir is the path of the run directory in the directory that it was fetched into.
func (r *Run) RunDir() string { return r.runDir.String() }

// ValidatorID is the identity that signed the run.
func (r *Run) ValidatorID() string { return r.listing.ValidatorID() }

// Completed is the time that the run claims, which is signed; zero without.
func (r *Run) Completed() time.Time { return r.completed }

// Len is the number of outputs.
func (r *Run) Len() int { return r.listing.Len() }

// Claimed is the number of bytes of the outputs as the store claims it.
func (r *Run) Claimed() int64 {
	return sizeOf(r.plan.extents)
}
