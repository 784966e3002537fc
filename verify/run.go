package verify

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Run is a run directory that may contain a bundle, together with the project root that its output
// paths are relative to. Nothing in it has been verified.
type Run struct {
	id      string
	at      location
	project *pathsafe.Dir
	dir     *pathsafe.Dir // nil while it is not read
	err     error         // why it could not be opened
	first   *pathsafe.ID  // of the directory that was opened first
	held    bool          // it is not opened again
	sealed  string        // the bundle root that it must have; "" for any
}

// location is the path of a run directory.
type location struct {
	path string
	runs *pathsafe.Dir // nil: by its path; else by its name in this directory
	name string
}

func (l location) open() (*pathsafe.Dir, error) {
	if l.runs != nil {
		return l.runs.OpenDirAcross(l.name)
	}
	return pathsafe.OpenRoot(l.path)
}

// OpenRun names a run directory. It is opened when a law reads it, and a chain has one open at
// a time, since it may have more runs than a process may have descriptors. A missing directory
// is not an error here: the laws have codes for it. The run does not own project, which must stay
// open as long as the run and the values verified from it.
func OpenRun(project *pathsafe.Dir, path string) (*Run, error) {
	id, err := RunID(path)
	if err != nil {
		return nil, err
	}
	return &Run{id: id, at: location{path: path}, project: project}, nil
}

// RunOf is [OpenRun] for the run directory of this name in an open directory, which must stay
// open as long as the run and the values verified from it.
func RunOf(project, runs *pathsafe.Dir, name string) *Run {
	return &Run{id: name, at: location{filepath.Join(runs.Name(), name), runs, name}, project: project}
}

// RunIn is a run directory that is open already, of this name. It belongs to the run, which
// looks into no other one.
func RunIn(project, dir *pathsafe.Dir, id string) *Run {
	return &Run{id: id, at: location{path: dir.Name()}, project: project, dir: dir, held: true}
}

// Expect makes every law reject a bundle with another root than bundleRoot, 64 lower-case hex
// digits: for a run that is known by its seal, and whose directory another process can exchange at
// any moment.
func (r *Run) Expect(bundleRoot string) { r.sealed = bundleRoot }

// enter opens the run directory, unless it is open. A verdict is on one directory: it returns an
// error for one that has replaced it.
func (r *Run) enter() error {
	if r.dir != nil || r.err != nil {
		return r.err
	}
	if r.held {
		return fs.ErrClosed
	}
	dir, err := r.at.open()
	if err != nil {
		r.err = err
		return err
	}
	st, err := dir.Stat()
	if err == nil && r.first != nil && (st.ID.Dev != r.first.Dev || st.ID.Ino != r.first.Ino) {
		err = machine.Disturbed("the directory was replaced")
	}
	if err != nil {
		dir.Close()
		return err
	}
	r.dir, r.first = dir, &st.ID
	return nil
}

// RunID is the final component of a run directory's path (SPECTRUM-04,
// "Roots"). Trailing slashes do not count; a path that ends in "." or ".." is
// resolved first, so that the id is a name.
func RunID(path string) (string, error) {
	trimmed := strings.TrimRight(path, "/")
	switch base := trimmed[strings.LastIndexByte(trimmed, '/')+1:]; base {
	case "", ".", "..":
		real, err := resolve(path)
		if err != nil {
			return "", fmt.Errorf("run directory %q: %w", path, err)
		}
		return filepath.Base(real), nil
	default:
		return base, nil
	}
}

func resolve(path string) (string, error) {
	if path == "" {
		return "", errors.New("its path is empty")
	}
	real, err := pathsafe.ResolveDir(path)
	if err == nil && real == "/" {
		err = errors.New("the file system's root has no name that could be a run id")
	}
	return real, err
}

// ID is the run_id.
func (r *Run) ID() string { return r.id }

// Close closes the run directory. Outputs can be read after it.
func (r *Run) Close() error {
	if r.dir == nil {
		return nil
	}
	dir := r.dir
	r.dir = nil
	return dir.Close()
}

// ClaimedCompletion returns the completed_at of STATUS.json, unverified: use it only to decide
// which run to verify first.
func (r *Run) ClaimedCompletion() (time.Time, bool) {
	if r.enter() != nil {
		return time.Time{}, false
	}
	a, err := r.read(bundle.Status)
	if err != nil {
		return time.Time{}, false
	}
	return completion(a.object)
}

// completion reads the completed_at of a STATUS.json.
func completion(status canonjson.Object) (time.Time, bool) {
	value, _ := status.Get("completed_at")
	completed, err := rfc3339(value)
	return completed.time(), err == nil
}
