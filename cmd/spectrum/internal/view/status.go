package view

import (
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/canonjson"
	"github.com/spectrumfs/spectrum/verify/store"
)

// The files of a view's control directory.
const (
	StatusFile    = "status.json"
	candidateFile = "candidate.json"
	previewFile   = "preview.md"
	shownFile     = "shown.json"
	changesFile   = "changes.patch"
)

// changesPerm is the mode of changes.patch: it has lines of the restore root, which may be more
// private than the candidate.
const changesPerm = 0o400

// maxShownFindings is how many findings status.json has in full.
const maxShownFindings = 100

// status is the content of status.json.
type status struct {
	id    string
	since time.Time
	stats fusefs.Stats
	runs  func() map[string]any // the runs of a view of many runs; nil for others
	moved func() bool           // of the same, whether their directory has moved
	lazy  *Lazy                 // what a lazy view shows; nil for others
	marks Marks
	shown func() []string // the bundle roots of what is shown now

	mu       sync.Mutex
	count    int64
	findings []Finding

	counted      time.Time // when the next two were taken from stats
	bytes, reads int64
	attested     *AttestedRecord
}

// countEvery is how old the counts of what was read may be. A content that changed with
// every read would be kept for every reader (see fusefs.Live). All else is as it is.
const countEvery = time.Second

// A Finding is a failure of a source, once.
type Finding struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

func newStatus(marks Marks) *status {
	return &status{
		id: uuid.NewString(), since: time.Now(), marks: marks,
		shown: func() []string { return nil },
	}
}

// watch makes a view report its reads and findings.
func (s *status) watch(opts *fusemount.Options) {
	opts.Stats, opts.OnTamper = &s.stats, s.tampered
}

func (s *status) tampered(path string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if len(s.findings) < maxShownFindings {
		s.findings = append(s.findings, Finding{words.JSON(path), words.JSON(err.Error())})
	}
}

// StatusRecord is status.json.
type StatusRecord struct {
	ViewID    string         `json:"view_id"`
	Since     string         `json:"mounted_at"`
	Bytes     int64          `json:"verified_bytes"` // passed to the kernel, each read checked
	Reads     int64          `json:"verified_reads"`
	Tampered  bool           `json:"tampered"`
	Findings  int64          `json:"tamper_findings"`
	Tampering []Finding      `json:"tampering"` // the first of them
	Runs      map[string]any `json:"runs,omitempty"`
	Moved     bool           `json:"runs_dir_moved,omitzero"` // its path leads to another one now, which is not shown

	// Of a lazy view: what was checked so far.
	Attested *AttestedRecord `json:"attested,omitempty"`

	// A commit of the shown files, or one in the restore root, was rolled back. The reader sees
	// that, never why (rollback and snapshot contract, section 11).
	RolledBack bool `json:"rolled_back"`
}

func (s *status) record() StatusRecord {
	r := StatusRecord{
		ViewID: s.id, Since: s.since.UTC().Format(time.RFC3339),
	}
	if s.runs != nil {
		r.Runs, r.Moved = s.runs(), s.moved()
	}
	r.RolledBack = s.marks.have(s.shown()...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.counted) >= countEvery {
		s.counted, s.bytes, s.reads = time.Now(), s.stats.Bytes(), s.stats.Reads()
		s.attested = s.lazy.record()
	}
	r.Bytes, r.Reads, r.Attested = s.bytes, s.reads, s.attested
	r.Tampered, r.Findings, r.Tampering = s.count > 0, s.count, slices.Clone(s.findings)
	return r
}

// json is status.json as it is now.
func (s *status) json() []byte { return line(s.record()) }

// line returns a value as canonical JSON, with escapes for invisible characters and a newline at
// the end. Its values always have such a form.
func line(v any) []byte {
	raw, err := canonjson.Marshal(v)
	if err != nil {
		raw = []byte("{}")
	}
	return append(visible.AppendJSON(nil, raw), '\n')
}

func (s *status) file(perm fs.FileMode) fusefs.File {
	return fusefs.File{Path: StatusFile, Mode: perm, ModTime: s.since, Source: fusefs.Live(s.json)}
}

// shownRecord is shown.json: in few bytes, what a rollback needs to know of a view.
type shownRecord struct {
	BundleRoots []string `json:"bundle_roots"` // in ascending order
	RestoreRoot string   `json:"restore_root"` // its real path when it was mounted; "" for none
}

func (s *status) shownJSON() []byte {
	r := shownRecord{BundleRoots: append([]string{}, s.shown()...), RestoreRoot: words.JSON(s.marks.Root)}
	slices.Sort(r.BundleRoots)
	return line(r)
}

// CandidateRecord is candidate.json.
type CandidateRecord struct {
	ProjectRoot string         `json:"project_root"`
	RunDirs     []string       `json:"run_dirs"`
	Chain       bool           `json:"chain"`
	ChainRoot   *string        `json:"chain_root"`
	RestoreRoot *string        `json:"restore_root"`
	Runs        []CandidateRun `json:"runs"`
	Unsigned    []string       `json:"unsigned_artifacts"` // artifacts that no signature covers
	Attested    bool           `json:"attested,omitzero"`  // outputs are checked as they are read
}

// A CandidateRun is a run of a [CandidateRecord].
type CandidateRun struct {
	RunID       string `json:"run_id"`  // the name of a directory: not signed
	TaskID      string `json:"task_id"` // signed
	BundleRoot  string `json:"bundle_root"`
	ValidatorID string `json:"validator_id"`
	Files       int    `json:"files"`
	Bytes       *int64 `json:"bytes"` // nil: not signed
}

func newCandidateRecord(o preview.Origin, scene *Scene, lazy bool) CandidateRecord {
	r := CandidateRecord{
		ProjectRoot: words.JSON(o.ProjectRoot), Chain: scene.IsChain(), Unsigned: preview.Unsigned(scene.Bundles()), Attested: lazy,
	}
	for _, dir := range o.RunDirs {
		r.RunDirs = append(r.RunDirs, words.JSON(dir))
	}
	if root := scene.ChainRoot(); scene.IsChain() {
		r.ChainRoot = &root
	}
	if root := words.JSON(o.RestoreRoot); root != "" {
		r.RestoreRoot = &root
	}
	for _, p := range scene.parts {
		b := p.Bundle
		r.Runs = append(r.Runs, CandidateRun{b.RunID(), b.TaskID(), b.Root(), b.ValidatorID(), b.Len(), p.Bytes})
	}
	return r
}

// candidateFiles are candidate.json and, for each run, the seven artifacts as they were verified,
// for users that may read them in the run directory. above is the access to the directory of a run
// directory.
func candidateFiles(o preview.Origin, scene *Scene, lazy bool, since time.Time, above func(runDir string) fs.FileMode) []fusefs.File {
	files := []fusefs.File{heldFile(candidateFile, string(line(newCandidateRecord(o, scene, lazy))), scene.privatePerm(), since)}
	for at, p := range scene.parts {
		b := p.Bundle
		files = append(files, directoryFile("runs/"+b.RunID(), b.Granted()&above(o.RunDirs[at])))
		for a := range b.Artifacts() {
			files = append(files, signedFile("runs/"+b.RunID()+"/"+a.Name(), a))
		}
	}
	return files
}

// grantedAbove is what the directory of a run directory grants now: nothing, if that cannot
// be found out.
func grantedAbove(runDir string) fs.FileMode {
	if store.IsAddress(runDir) { // fetched into a private directory
		return 0o700
	}
	dir, err := pathsafe.OpenRoot(runDir + "/..")
	if err != nil {
		return 0
	}
	defer dir.Close()
	return granted(dir)
}

func signedFile(path string, a verify.Artifact) fusefs.File {
	return fusefs.File{
		Path: path, Size: a.Size(), Mode: a.Perm(), ModTime: a.ModTime(),
		Source: fusefs.SourceFunc(func() (fusefs.Content, error) {
			source, err := a.Open()
			if err != nil {
				return nil, err
			}
			return source, nil
		}),
	}
}
