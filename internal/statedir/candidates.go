package statedir

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// CandidatesLog is the name of the file with the candidates that this program has sealed: a line
// for each, the newest last. So the newest is known by the order of sealing, and not by names or
// times of directories, which any process can change.
const CandidatesLog = "candidates.log"

// candidatesRead is how much of the end of that file is read.
const candidatesRead = 1 << 20

// A SealedCandidate is a run directory that was sealed.
type SealedCandidate struct {
	At         time.Time `json:"at"`
	BundleRoot string    `json:"bundle_root"`
	Over       []byte    `json:"over"`    // the directory that it would change; empty if not known
	RunDir     []byte    `json:"run_dir"` // an absolute path
}

// A candidateLine is a line of the file, with a sum as a [rootLine].
type candidateLine struct {
	SealedCandidate
	Sum string `json:"sum"`
}

func (c SealedCandidate) line() candidateLine {
	c.At = c.At.UTC().Truncate(time.Millisecond)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", c.At.Format(time.RFC3339Nano), c.BundleRoot, c.Over, c.RunDir))
	return candidateLine{c, hex.EncodeToString(sum[:8])}
}

// KeepCandidate notes, durably, that a candidate was sealed.
func (d *Dir) KeepCandidate(c SealedCandidate) error {
	f, err := openToAppend(d.root, CandidatesLog)
	if err != nil {
		return d.part(CandidatesLog, err)
	}
	return d.appendLine(f, c.line())
}

// Candidates returns the candidates that were sealed, the newest first, each run directory once. It
// ignores lines that cannot be read.
func (d *Dir) Candidates() ([]SealedCandidate, error) {
	lines, err := d.readLines(CandidatesLog, candidatesRead)
	if err != nil {
		return nil, err
	}
	var all []SealedCandidate
	seen := map[string]bool{}
	for _, text := range slices.Backward(lines) {
		var line candidateLine
		if json.Unmarshal(text, &line) != nil || line.Sum != line.line().Sum || seen[string(line.RunDir)] {
			continue
		}
		seen[string(line.RunDir)] = true
		all = append(all, line.SealedCandidate)
	}
	return all, nil
}

// IsGone reports whether the path of the run directory does not exist any more. A path that cannot
// be looked up is not gone: the caller that opens it reports the error.
func (c *SealedCandidate) IsGone() bool {
	way, err := pathsafe.WayTo(string(c.RunDir))
	return err == nil && way.Missing
}

// Present returns the candidates whose run directories still exist.
func Present(all []SealedCandidate) (there []SealedCandidate) {
	for _, c := range all {
		if !c.IsGone() {
			there = append(there, c)
		}
	}
	return there
}

// NamedBy returns the candidates whose run directory has a name that begins with text.
func NamedBy(all []SealedCandidate, text string) (named []SealedCandidate) {
	for _, c := range all {
		if strings.HasPrefix(filepath.Base(string(c.RunDir)), text) {
			named = append(named, c)
		}
	}
	return named
}

// Unreviewed returns the candidates that still exist and that no preview shows (isShown is false);
// with a restore root, only those that would change it.
func Unreviewed(all []SealedCandidate, root string, isShown func(runDir string) bool) (found []SealedCandidate) {
	for _, c := range all {
		isOf := root == "" || len(c.Over) > 0 && pathsafe.IsWithin(string(c.Over), root)
		if isOf && !isShown(string(c.RunDir)) && !c.IsGone() {
			found = append(found, c)
		}
	}
	return found
}
