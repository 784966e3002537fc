package savepoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Savepoint is a savepoint that was verified, all but the files that it is over:
// for those there is [Savepoint.Drift]. Only a [Store] makes one.
type Savepoint struct {
	id      string
	root    string
	created time.Time
	dir     string
	record  record
	listing *verify.Listing
}

// record is what a savepoint signs of itself: constraints.savepoint.
type record struct {
	Attempt  string  `json:"attempt"`
	Parent   *string `json:"parent"` // null for the first of a chain
	Report   digests `json:"commit_report"`
	Root     string  `json:"restore_root"`
	Sequence int     `json:"sequence"`
}

// digests are the SHA-256 of a Commit Report, in lower-case hex.
type digests struct {
	JSON     string `json:"json"`
	Markdown string `json:"markdown"`
}

// recordName is the member of the constraints that is the record.
const recordName = "savepoint"

// ID is the savepoint's bundle root, 64 lower-case hex digits.
func (sp Savepoint) ID() string { return sp.id }

// Parent is the ID of the savepoint before, "" for the first.
func (sp Savepoint) Parent() string {
	if sp.record.Parent == nil {
		return ""
	}
	return *sp.record.Parent
}

// Root is the absolute path of the restore root.
func (sp Savepoint) Root() string { return sp.root }

// Attempt is the id of the attempt that it was prepared for, a UUID.
func (sp Savepoint) Attempt() string { return sp.record.Attempt }

// IsNamed reports whether this is its ID or that of its attempt, or the first digits of one.
func (sp Savepoint) IsNamed(id string) bool {
	return hexdigits.Begins(sp.Attempt(), id) || hexdigits.Begins(sp.id, id)
}

// Created is when it was prepared, as it was signed.
func (sp Savepoint) Created() time.Time { return sp.created }

// Sequence is its place in the chain, 1 for the first.
func (sp Savepoint) Sequence() int { return sp.record.Sequence }

// RunDir is the absolute path of its run directory.
func (sp Savepoint) RunDir() string { return sp.dir }

// ReportPath is the absolute path of its Commit Report.
func (sp Savepoint) ReportPath() string { return filepath.Join(sp.dir, reportMarkdown) }

// Listing is what its signature covers; nil for the zero Savepoint.
func (sp Savepoint) Listing() *verify.Listing { return sp.listing }

// ValidatorID is the identity that signed it, 64 lower-case hex digits.
func (sp Savepoint) ValidatorID() string {
	if sp.listing == nil {
		return ""
	}
	return sp.listing.ValidatorID()
}

// DamageError is something in a store that is not what was put there.
type DamageError struct {
	RunDir string // of the savepoint, or whatever else stands in its place
	Err    error

	Attempt  string // as the name of the directory has it; "" where that is not of a savepoint
	Sequence int    // in the same way
	Retired  bool   // it does not stand in the chain
}

// Error names the savepoint.
func (e *DamageError) Error() string { return fmt.Sprintf("savepoint %q: %v", e.RunDir, e.Err) }

// Unwrap returns what is wrong with it.
func (e *DamageError) Unwrap() error { return e.Err }

// IsOf reports whether it is among the savepoints of a restore root, by the name that the root's
// records are kept under.
func (e *DamageError) IsOf(root string) bool {
	key, _, err := keyOf(root)
	return err == nil && slices.Contains(strings.Split(e.RunDir, "/"), key)
}

// damage makes a DamageError, unless the fault is this machine's.
func damage(runDir string, err error) error {
	if machine.IsFault(err) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("savepoint %q: %w", runDir, err)
	}
	return &DamageError{RunDir: runDir, Err: err}
}

// load reads and verifies one savepoint.
func (c *chain) load(where string, s slot) (Savepoint, error) {
	sp, err := c.read(where, s)
	if err == nil {
		err = sp.check(c.key, s)
	}
	if err != nil {
		return Savepoint{}, damage(c.runDir(where, s), err)
	}
	return sp, nil
}

func (c *chain) read(where string, s slot) (Savepoint, error) {
	dir, err := c.dirOf(where).OpenDir(s.name()) // no link
	if err != nil {
		return Savepoint{}, err
	}
	run := verify.RunIn(nil, dir, s.name())
	defer run.Close()
	listing, err := verify.List(context.Background(), run)
	if err != nil {
		return Savepoint{}, err
	}
	sp := Savepoint{id: listing.Root(), dir: c.runDir(where, s), listing: listing}
	return sp, sp.parse(listing.TaskSpec())
}

var errForm = errors.New("its TASK_SPEC.json is not that of a savepoint")

// parse reads the record. What is accepted prints as the very same bytes.
func (sp *Savepoint) parse(spec canonjson.Object) error {
	constraints, _ := spec.Get("constraints")
	object, _ := constraints.Object()
	value, _ := object.Get(recordName)
	raw := value.Append(nil)
	if err := json.Unmarshal(raw, &sp.record); err != nil {
		return errForm
	}
	again, err := canonjson.Marshal(sp.record)
	if err != nil || !bytes.Equal(again, raw) {
		return errForm
	}
	at, _ := spec.Get("created_at")
	text, _ := at.Text()
	if sp.created, err = time.Parse(time.RFC3339Nano, text); err != nil {
		return errForm
	}
	sp.root, err = parseRoot(sp.record.Root)
	return err
}

// Said is a text among the further constraints that the savepoint signs; "" where
// there is none of this name.
func (sp Savepoint) Said(name string) string {
	text, _ := sp.said(name).Text()
	return text
}

// Texts are the texts of a member of the further constraints that is a list of them.
func (sp Savepoint) Texts(name string) []string {
	var all []string
	for value := range sp.said(name).Elements() {
		if text, ok := value.Text(); ok {
			all = append(all, text)
		}
	}
	return all
}

// Hashes are the files of a member of the further constraints that names them with
// their hashes, in the order of their paths; none where there is no such member.
func (sp Savepoint) Hashes(name string) ([]verify.Entry, error) {
	object, _ := sp.said(name).Object()
	var all []verify.Entry
	for path, value := range object.Members() {
		text, _ := value.Text()
		e, err := hashOf(path, text)
		if err != nil {
			return nil, damage(sp.dir, fmt.Errorf("%s: %w", name, err))
		}
		all = append(all, e)
	}
	return all, nil
}

func hashOf(path, text string) (e verify.Entry, err error) {
	if e.Path, err = pathsafe.Parse(path); err != nil {
		return verify.Entry{}, err
	}
	digits, ok := strings.CutPrefix(text, bundle.HashPrefix)
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != len(e.Digest) {
		return verify.Entry{}, fmt.Errorf("%q has the hash %.100q", path, text)
	}
	copy(e.Digest[:], raw)
	return e, nil
}

func (sp Savepoint) said(name string) canonjson.Value {
	if sp.listing == nil {
		return canonjson.Value{}
	}
	constraints, _ := sp.listing.TaskSpec().Get("constraints")
	object, _ := constraints.Object()
	value, _ := object.Get(name)
	return value
}

// check compares the content of a savepoint with its place.
func (sp *Savepoint) check(key string, s slot) error {
	want, clean, err := keyOf(sp.root)
	signed := slot{sp.record.Sequence, sp.record.Attempt}
	first := sp.record.Parent == nil
	switch {
	case err != nil:
		return err
	case clean != sp.root || want != key:
		return fmt.Errorf("it belongs to restore root %q, but is stored with those of another", sp.root)
	case signed != s:
		return fmt.Errorf("it was signed as %q", signed.name())
	case first != (s.sequence == 1) || !first && len(*sp.record.Parent) != 2*sha256.Size:
		return errors.New("its parent has an invalid name")
	}
	return nil
}

// parseRoot is the reverse of [canonjson.PathText].
func parseRoot(text string) (string, error) {
	path := text
	if text != "" && text[0] == '"' {
		var err error
		if path, err = strconv.Unquote(text); err != nil {
			return "", errForm
		}
	}
	if canonjson.PathText(path) != text {
		return "", errForm
	}
	return path, nil
}

// Report is a Restore Commit Report (restore savepoint protocol, section 11) in
// its two forms.
type Report struct {
	Markdown []byte
	JSON     []byte // canonical
}

// The files of a Commit Report, and the most that is read or written of one.
const (
	reportMarkdown = "COMMIT_REPORT.md"
	reportJSON     = "COMMIT_REPORT.json"
	maxReport      = 1 << 30
)

func (r Report) digests() digests { return digests{hexSum(r.JSON), hexSum(r.Markdown)} }

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Report reads the Commit Report and compares it with what was signed; the error
// is a [*DamageError] when it is another.
func (sp Savepoint) Report() (Report, error) {
	report, err := sp.readReport()
	if err == nil && report.digests() != sp.record.Report {
		err = errors.New("its Commit Report is not the one that was signed")
	}
	if err != nil {
		return Report{}, damage(sp.dir, err)
	}
	return report, nil
}

func (sp Savepoint) readReport() (Report, error) {
	above, err := pathsafe.OpenRoot(filepath.Dir(sp.dir))
	if err != nil {
		return Report{}, err
	}
	defer above.Close()
	dir, err := above.OpenDir(filepath.Base(sp.dir))
	if err != nil {
		return Report{}, err
	}
	defer dir.Close()
	markdown, err := readFile(dir, reportMarkdown)
	if err != nil {
		return Report{}, err
	}
	raw, err := readFile(dir, reportJSON)
	if err != nil {
		return Report{}, err
	}
	return Report{markdown, raw}, nil
}

func readFile(dir *pathsafe.Dir, name string) ([]byte, error) {
	f, st, err := dir.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	if st.Size > maxReport {
		return nil, fmt.Errorf("%s has %d bytes; at most %d are read", name, st.Size, maxReport)
	}
	raw, err := io.ReadAll(io.LimitReader(f, st.Size+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return raw, nil
}
