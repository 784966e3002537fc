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

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Kind says what happened.
type Kind string

const (
	// CommitBegin means that a commit is about to write. It opens its action.
	CommitBegin Kind = "commit_begin"
	// CommitEnd means that all of a commit is in place and durable. It ends its action.
	CommitEnd Kind = "commit_end"
	// RolledBack means that nothing of an action is left in the root that has its path.
	// It ends its action.
	RolledBack Kind = "rollback"
	// Halted means that an attempt could be neither undone nor completed. Until it can,
	// or a person acts, nothing else is done in its root. The action stays open, if it
	// was.
	Halted Kind = "halt"
	// Released means that a person has looked at a halted root, and what is left of the
	// action stays as it is. It ends its action.
	Released Kind = "release"
	// RollbackBegin means that a requested rollback is about to write. It opens its action,
	// which ends with RolledBack.
	RollbackBegin Kind = "rollback_begin"
	// RollbackRefused means that a requested rollback could not begin, for the given reason:
	// nothing was written in the root. It neither begins nor ends an action.
	RollbackRefused Kind = "rollback_refused"
	// SnapshotTaken means that a snapshot of a root is durable. This kind and the one
	// below are events of their own; they neither begin nor end an action.
	SnapshotTaken Kind = "snapshot"
	// SnapshotPruned means that a snapshot is no longer kept.
	SnapshotPruned Kind = "snapshot_prune"
	// Quarantined means that a finding holds a candidate from now on. This kind and the
	// two below are of a candidate; they neither begin nor end an action.
	Quarantined Kind = "quarantine"
	// QuarantineCleared means that what was computed is no longer found, and holds the
	// candidate no more.
	QuarantineCleared Kind = "quarantine_clear"
	// QuarantineReleased means that a person has released a candidate from a finding.
	QuarantineReleased Kind = "quarantine_release"
	// LossAccepted means that a person has accepted that the log does not bear out some savepoints
	// and snapshots, since it was lost or cut. It neither begins nor ends an action.
	LossAccepted Kind = "loss_accepted"
)

var kinds = []Kind{
	CommitBegin, CommitEnd, RollbackBegin, RollbackRefused, RolledBack, Halted, Released, SnapshotTaken, SnapshotPruned,
	Quarantined, QuarantineCleared, QuarantineReleased, LossAccepted,
}

// ofCandidate reports that an event names a candidate.
func (k Kind) ofCandidate() bool {
	return k == Quarantined || k == QuarantineCleared || k == QuarantineReleased
}

// ofSnapshot reports that an event is of a snapshot, and of nothing else.
func (k Kind) ofSnapshot() bool { return k == SnapshotTaken || k == SnapshotPruned }

func (k Kind) begins() bool { return k == CommitBegin || k == RollbackBegin }

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
	Action    string   // id of what it belongs to, a UUID; of what is said of a candidate, its own
	Root      string   // absolute path of the restore root
	Candidate string   // source id, 64 lower-case hex digits; "" but for the kinds that are of a candidate
	Preview   string   // id of the preview that was approved; "" for none
	Rollback  Rollback // of RolledBack, RollbackBegin and RollbackRefused
	Snapshot  string   // id, 64 lower-case hex digits where the kind is of a snapshot; "" for none
	Brings    []string // ids of the commits that a rollback brings back, each a UUID, none twice; of RollbackBegin and RolledBack
	Actions   []string // ids of other actions that it is about, each a UUID, none twice; not of a candidate
	Lost      []string // ids of savepoints and snapshots, and digests of contents, each 64 lower-case hex digits, none twice; of LossAccepted
	Reason    string   // in words; "" for none
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
	Torn     *Torn             // nil, or the text before it
}

// Torn is the text before an entry: the beginnings of one or more lines that
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
	if len(e.Actions) > 0 {
		members["affected"] = e.Actions
	}
	if len(e.Brings) > 0 {
		members["brings"] = e.Brings
	}
	if len(e.Lost) > 0 {
		members["lost"] = e.Lost
	}
	return members
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

var errForm = errors.New("neither an entry nor a torn line")

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
			Actions: f.list("affected"), Brings: f.list("brings"), Lost: f.list("lost"),
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

// check requires the members of an event.
func (e *Event) check() error {
	switch {
	case !slices.Contains(kinds, e.Kind):
		return fmt.Errorf("unknown kind %q", e.Kind)
	case e.Action == "" || e.Root == "":
		return errors.New("no action or no root")
	case e.Kind.ofCandidate() && !isHash(e.Candidate), !e.Kind.ofCandidate() && e.Candidate != "":
		return fmt.Errorf("a %s of the candidate %q", e.Kind, e.Candidate)
	case e.Kind.ofCandidate() && len(e.Actions) > 0:
		return fmt.Errorf("a %s that is about %d actions", e.Kind, len(e.Actions))
	case e.Kind.ofSnapshot() && !isHash(e.Snapshot):
		return fmt.Errorf("a %s of the snapshot %q", e.Kind, e.Snapshot)
	}
	if err := e.checkRollback(); err != nil {
		return err
	}
	if len(e.Brings) > 0 && e.Kind != RollbackBegin && e.Kind != RolledBack {
		return fmt.Errorf("a %s that brings back %d commits", e.Kind, len(e.Brings))
	}
	return errors.Join(checkActions(e.Actions), checkActions(e.Brings), e.checkLost())
}

// checkRollback requires the type of a rollback for rollbacks, and for no other event. A micro
// rollback is the end of a commit, and does not begin by itself.
func (e *Event) checkRollback() error {
	known := slices.Contains(rollbacks, e.Rollback)
	switch {
	case e.Kind == RolledBack && known, (e.Kind == RollbackBegin || e.Kind == RollbackRefused) && known && e.Rollback != Micro:
		return nil
	case e.Kind != RolledBack && e.Kind != RollbackBegin && e.Kind != RollbackRefused && e.Rollback == "":
		return nil
	}
	return fmt.Errorf("a %s with the rollback %q", e.Kind, e.Rollback)
}

// checkLost requires the ids of what is lost of the kind that is about that, and of no other.
func (e *Event) checkLost() error {
	if (len(e.Lost) > 0) != (e.Kind == LossAccepted) {
		return fmt.Errorf("a %s of %d lost records", e.Kind, len(e.Lost))
	}
	seen := map[string]bool{}
	for _, id := range e.Lost {
		if !isHash(id) || seen[id] {
			return fmt.Errorf("%.100q is not the id of a savepoint or a snapshot, or is named twice", id)
		}
		seen[id] = true
	}
	return nil
}

// checkActions requires each to be the id of an action in its usual form, and none twice.
func checkActions(ids []string) error {
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		parsed, err := uuid.Parse(id)
		if err != nil || parsed.String() != id || seen[id] {
			return fmt.Errorf("%.100q is not the id of an action, or is named twice", id)
		}
		seen[id] = true
	}
	return nil
}

// isHash reports whether a text can be the source id of a candidate, or the id of a snapshot.
func isHash(s string) bool {
	return hexdigits.Are(s, 2*sha256.Size)
}

// after is what is open after an event, when these were before.
func (e *Event) after(open map[string]string) map[string]string {
	now := maps.Clone(open)
	if now == nil {
		now = map[string]string{}
	}
	switch {
	case e.Kind.begins():
		now[e.Action] = e.Root
	case e.Kind.ends():
		delete(now, e.Action)
	}
	return now
}

// RootText is the path of a restore root as it stands in the log, see [Event].
func RootText(path string) string { return canonjson.PathText(path) }

// RootOf is the reverse of [RootText].
func RootOf(text string) string {
	if path, err := strconv.Unquote(text); err == nil {
		return path
	}
	return text
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
