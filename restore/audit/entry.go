package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Kind says what happened.
type Kind string

const (
	// CommitBegin: a commit is about to write. It opens its action.
	CommitBegin Kind = "commit_begin"
	// CommitEnd: all of a commit is in place and durable. It ends its action.
	CommitEnd Kind = "commit_end"
	// RolledBack: nothing of an action is left in the root that has its path. It
	// ends its action.
	RolledBack Kind = "rollback"
	// Halted: an attempt could be neither undone nor completed. Until it can, or a
	// person acts, nothing else is done in its root. The action stays open, if it
	// was.
	Halted Kind = "halt"
	// Released: a person has looked at a halted root, and what is left of the
	// action stays as it is. It ends its action.
	Released Kind = "release"
	// Quarantined: a finding holds a candidate from now on. This kind and the two
	// below are of a candidate; they neither begin nor end an action.
	Quarantined Kind = "quarantine"
	// QuarantineCleared: what was computed is no longer found, and holds the
	// candidate no more.
	QuarantineCleared Kind = "quarantine_clear"
	// QuarantineReleased: a person has released a candidate from a finding.
	QuarantineReleased Kind = "quarantine_release"
)

var kinds = []Kind{CommitBegin, CommitEnd, RolledBack, Halted, Released, Quarantined, QuarantineCleared, QuarantineReleased}

// ofCandidate says that an event names a candidate.
func (k Kind) ofCandidate() bool {
	return k == Quarantined || k == QuarantineCleared || k == QuarantineReleased
}

func (k Kind) ends() bool { return k == CommitEnd || k == RolledBack || k == Released }

// Rollback is the type of a rollback (rollback contract, section 5).
type Rollback string

// The types of rollbacks. An event without one has "".
const (
	Micro     Rollback = "micro"     // of a commit that failed, by itself
	Session   Rollback = "session"   // of a commit that had ended, asked for
	Emergency Rollback = "emergency" // of a commit that was killed, afterwards
)

var rollbacks = []Rollback{Micro, Session, Emergency}

// Event is what a caller has to say.
type Event struct {
	Kind      Kind
	Action    string // id of what it belongs to, a UUID; of what is said of a candidate, its own
	Root      string // absolute path of the restore root
	Candidate string // source id, 64 lower-case hex digits; "" but for the kinds that are of a candidate
	Preview   string // id of the preview that was approved; "" for none
	Rollback  Rollback
	Snapshot  string // id; "" for none
	Reason    string // in words; "" for none
}

// Entry is an event in its place in the log.
type Entry struct {
	Event
	Sequence int64 // 1 for the first
	Time     time.Time
	UID      int
	Operator string            // name of the user; "" if the system knows none
	Previous string            // hash of the entry before
	Hash     string            // its own: SHA-256 of the line, 64 hex digits
	Open     map[string]string // after it: id to root of what has begun and not ended
	Torn     *Torn             // nil, or what stands before it
}

// Torn is what stands before an entry: the beginnings of one or more lines that
// were never finished, each with the end that the next event has given it.
type Torn struct {
	Bytes  int64
	SHA256 string // 64 hex digits
}

// tornEnd ends a torn line. No entry ends so: a last line that was changed is not
// taken for a torn one.
const tornEnd = "!\n"

// genesis is the hash that comes before the first entry.
var genesis = strings.Repeat("0", 2*sha256.Size)

// maxLine bounds a line, in bytes.
const maxLine = 1 << 20

// line writes an entry as its line, without the newline.
func (e *Entry) line() ([]byte, error) {
	raw, err := canonjson.Marshal(e.Fields())
	if err == nil && len(raw) > maxLine {
		err = fmt.Errorf("the line would have %d bytes; at most %d", len(raw), maxLine)
	}
	return raw, err
}

// Fields are the members of an entry's line, as the package comment lists them.
func (e *Entry) Fields() map[string]any {
	var torn any
	if e.Torn != nil {
		torn = map[string]any{"bytes": e.Torn.Bytes, "sha256": e.Torn.SHA256}
	}
	members := map[string]any{
		"action": e.Action, "kind": string(e.Kind), "open": e.Open, "operator": orNull(e.Operator),
		"preview": orNull(e.Preview), "previous": e.Previous, "reason": orNull(e.Reason), "rollback": orNull(string(e.Rollback)),
		"root": e.Root, "sequence": e.Sequence, "snapshot": orNull(e.Snapshot), "time": e.Time.Format(time.RFC3339Nano),
		"torn": torn, "uid": e.UID,
	}
	if e.Candidate != "" {
		members["candidate"] = e.Candidate
	}
	return members
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

var errForm = errors.New("this is no entry, and no torn line")

// parse reads a line without its newline. What it accepts prints as the very
// same bytes.
func parse(line []byte) (Entry, error) {
	value, err := canonjson.Parse(line)
	if err != nil {
		return Entry{}, fmt.Errorf("%w: %w", errForm, err)
	}
	object, _ := value.Object()
	f := fields{object: object}
	e := Entry{
		Event: Event{
			Kind: Kind(f.text("kind")), Action: f.text("action"), Root: f.text("root"),
			Candidate: f.extra("candidate"), Preview: f.optional("preview"),
			Rollback: Rollback(f.optional("rollback")), Snapshot: f.optional("snapshot"), Reason: f.optional("reason"),
		},
		Sequence: f.number("sequence"), Time: f.time("time"), UID: int(f.number("uid")), Operator: f.optional("operator"),
		Previous: f.text("previous"), Hash: hashOf(line), Open: f.texts("open"), Torn: f.torn("torn"),
	}
	if again, err := e.line(); f.bad != "" || err != nil || !bytes.Equal(again, line) {
		return Entry{}, fmt.Errorf("%w: %s", errForm, f.bad)
	}
	if err := e.check(); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", errForm, err)
	}
	return e, nil
}

func hashOf(line []byte) string { return fmt.Sprintf("%x", sha256.Sum256(line)) }

// check wants what an event must have.
func (e *Event) check() error {
	switch {
	case !slices.Contains(kinds, e.Kind):
		return fmt.Errorf("there is no kind %q", e.Kind)
	case e.Rollback != "" && !slices.Contains(rollbacks, e.Rollback):
		return fmt.Errorf("there is no rollback %q", e.Rollback)
	case (e.Kind == RolledBack) != (e.Rollback != ""):
		return fmt.Errorf("a %s with the rollback %q", e.Kind, e.Rollback)
	case e.Action == "" || e.Root == "":
		return errors.New("no action or no root")
	case e.Kind.ofCandidate() && !isSource(e.Candidate), !e.Kind.ofCandidate() && e.Candidate != "":
		return fmt.Errorf("a %s of the candidate %q", e.Kind, e.Candidate)
	}
	return nil
}

// isSource says whether a text can be the source id of a candidate.
func isSource(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

// after is what is open after an event, when these were before.
func (e *Event) after(open map[string]string) map[string]string {
	now := maps.Clone(open)
	if now == nil {
		now = map[string]string{}
	}
	switch {
	case e.Kind == CommitBegin:
		now[e.Action] = e.Root
	case e.Kind.ends():
		delete(now, e.Action)
	}
	return now
}

// rootText is a path as it stands in the log. An absolute path does not begin
// with a quote, so that the two forms cannot be mistaken.
func rootText(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return strconv.QuoteToASCII(path)
}

// maxReason bounds a reason, in bytes.
const maxReason = 8 << 10

// reasonText is a reason as it stands in the log: of bounded length, and UTF-8.
func reasonText(reason string) string {
	if len(reason) > maxReason {
		reason = reason[:maxReason] + "..."
	}
	return strings.ToValidUTF8(reason, "\ufffd")
}
