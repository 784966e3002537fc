package quarantine

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Rule is a rule of section 12.
type Rule string

// The rules, in the order of section 12.
const (
	SourceUnknown             Rule = "source_unknown_high_impact"
	CrossAgentIdentity        Rule = "cross_agent_identity"
	RestrictedWithoutNeed     Rule = "restricted_without_need"
	ConflictsWithInstructions Rule = "conflicts_with_instructions"
	Contradiction             Rule = "machine_readable_contradiction"
	ArtifactStatus            Rule = "artifact_status"
	UnresolvedAuthority       Rule = "unresolved_authority"
	ApprovalVague             Rule = "approval_vague"
)

var rules = []Rule{
	SourceUnknown, CrossAgentIdentity, RestrictedWithoutNeed, ConflictsWithInstructions,
	Contradiction, ArtifactStatus, UnresolvedAuthority, ApprovalVague,
}

// sticky reports that only a person ends what a rule has found.
func (r Rule) sticky() bool { return r == ApprovalVague }

// Finding is what was found under a rule. Both members are its identity: a
// release covers this rule with these words.
type Finding struct {
	Rule   Rule   `json:"rule"`
	Detail string `json:"detail"` // in words: UTF-8, 1 to 4096 bytes
}

// maxDetail bounds a detail, in bytes.
const maxDetail = 4 << 10

func (f Finding) check() error {
	switch {
	case !slices.Contains(rules, f.Rule):
		return fmt.Errorf("unknown rule %q", f.Rule)
	case f.Detail == "" || len(f.Detail) > maxDetail || !utf8.ValidString(f.Detail):
		return fmt.Errorf("the detail of %s is not UTF-8 text of 1 to %d bytes", f.Rule, maxDetail)
	}
	return nil
}

// Candidate is what is held: its source id, and for people where it was and where
// it was to go when its record was last changed.
type Candidate struct {
	Source      string   `json:"source"`       // bundle root or chain root, 64 lower-case hex digits
	RunDirs     []string `json:"run_dirs"`     // absolute paths, or addresses in a store
	RestoreRoot string   `json:"restore_root"` // absolute path
}

// isAddress reports whether a run is named by its address in a store (package verify/store), which
// begins with a scheme.
func isAddress(run string) bool {
	scheme, _, found := strings.Cut(run, "://")
	return found && scheme != "" && !strings.Contains(scheme, "/")
}

func (c Candidate) check() error {
	if !isSource(c.Source) {
		return fmt.Errorf("%.100q is not a source id (64 lower-case hex digits)", c.Source)
	}
	for _, path := range append([]string{c.RestoreRoot}, c.RunDirs...) {
		if !filepath.IsAbs(path) && (path == c.RestoreRoot || !isAddress(path)) {
			return fmt.Errorf("path %q is not absolute", path)
		}
	}
	return nil
}

// text is a candidate as its record holds it.
func (c Candidate) text() Candidate {
	c.RestoreRoot, c.RunDirs = canonjson.PathText(c.RestoreRoot), slices.Clone(c.RunDirs)
	for i, path := range c.RunDirs {
		c.RunDirs[i] = canonjson.PathText(path)
	}
	return c
}

const sourceLen = 64

func isSource(s string) bool { return hexdigits.Are(s, sourceLen) }

// Mark is a finding in the record of a candidate.
type Mark struct {
	Finding
	Since    time.Time  `json:"since"`    // when it was last found anew, in UTC
	Cleared  *time.Time `json:"cleared"`  // when it was no longer found, in UTC; nil if it is or was released
	Released *Release   `json:"released"` // nil if no person has released it
}

// Held reports whether a mark holds its candidate.
func (m Mark) Held() bool { return m.Cleared == nil && m.Released == nil }

// State is "held", "cleared" or "released".
func (m Mark) State() string {
	switch {
	case m.Released != nil:
		return "released"
	case m.Cleared != nil:
		return "cleared"
	}
	return "held"
}

// Release is why a person has let a candidate go.
type Release struct {
	Reason   string    `json:"reason"`   // one line of UTF-8, 1 to 1000 bytes
	Operator string    `json:"operator"` // name of the user, "uid N" if the system knows none
	Time     time.Time `json:"time"`     // in UTC
}

// maxReason bounds a reason, in bytes.
const maxReason = 1000

func checkReason(reason string) error {
	breaks := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
	if strings.TrimSpace(reason) == "" || len(reason) > maxReason || !utf8.ValidString(reason) || strings.ContainsFunc(reason, breaks) {
		return ErrReason
	}
	return nil
}

// ChangeKind is what becomes of a mark.
type ChangeKind string

// The kinds of changes.
const (
	Holds    ChangeKind = "hold"    // it holds its candidate from now on
	Clears   ChangeKind = "clear"   // it was computed, and is no longer found
	Releases ChangeKind = "release" // a person has released it
)

// Change is one change of a record, with the mark as it is after that.
type Change struct {
	Kind      ChangeKind
	Candidate Candidate // as its record holds it
	Mark      Mark
}

// HeldError reports that a candidate is held. Who asks for marks turns them into
// this error.
type HeldError struct {
	Source string
	Marks  []Mark // in the order of section 12
}

// Error names the rules, on one line.
func (e *HeldError) Error() string {
	var words []string
	for _, m := range e.Marks {
		words = append(words, string(m.Rule))
	}
	return fmt.Sprintf("candidate %s is quarantined: %s", e.Source, strings.Join(slices.Compact(words), ", "))
}

// Reasons for which nothing is shown or released.
var (
	ErrUnknown   = errors.New("no such candidate in quarantine")
	ErrAmbiguous = errors.New("ambiguous prefix of a candidate in quarantine")
	ErrNotHeld   = errors.New("this candidate is not held")
	ErrReason    = fmt.Errorf("a reason is one line of UTF-8 text of 1 to %d bytes", maxReason)
)
