package preview

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/quarantine"
)

// ErrStale reports that the candidate, the restore root or the trust changed after the preview, or that
// a commit has begun since.
var ErrStale = errors.New("the preview is stale")

// Remade returns the error of making the recorded preview again: it is [ErrStale] if the restore root
// changed meanwhile, or a conflict that was decided on is gone.
func (r *Record) Remade(err error) error {
	switch {
	case errors.Is(err, ErrUnsettled):
		return fmt.Errorf("%w: %s", ErrStale, err.Error())
	case errors.Is(err, ErrDecision):
		return fmt.Errorf("%w: %s", ErrStale, r.lostDecision())
	}
	return err
}

// lostDecision names the files and conflicts that were decided on, one of which is no longer in conflict.
func (r *Record) lostDecision() string {
	about := map[string]string{}
	b := r.shown()
	for _, c := range b.Conflicts {
		about[c.ID] = c.Path
		for _, id := range c.Items {
			about[id] = c.Path
		}
	}
	var paths []string
	for _, id := range slices.Sorted(maps.Keys(r.kept.Asked.Decisions)) {
		if path := about[id]; path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return "a conflict that was decided on before is no longer there" + inParentheses(paths)
}

// Holds returns [ErrStale] unless the recorded preview is the same as again, which was made just
// now: only then can it be approved.
func (r *Record) Holds(again *Preview) error {
	if r.id == "" || again.decided == nil {
		return fmt.Errorf("%w: the preview has no items", ErrStale)
	}
	if again.witness.Attempts != r.kept.Witness.Attempts {
		return fmt.Errorf("%w: a commit has begun in the restore root after it was made", ErrStale)
	}
	if again.id != r.id {
		return fmt.Errorf("%w: %s", ErrStale, r.changed(again))
	}
	if again.witness != r.kept.Witness {
		return fmt.Errorf("%w: %s", ErrStale, r.changedRoot(again))
	}
	return nil
}

// changed returns what differs between the recorded preview and again, in words.
func (r *Record) changed(again *Preview) string {
	const after = " changed after it was made"
	var was Block
	if err := json.Unmarshal([]byte(r.kept.Block), &was); err != nil {
		return "the recorded preview cannot be read"
	}
	now := &again.block
	outputs := differentOutputs(was.Items, now.Items)
	switch {
	case was.SourceID != now.SourceID || len(outputs) > 0,
		!slices.Equal(was.Candidate.Directories, now.Candidate.Directories),
		!slices.Equal(contradictions(was.Findings), contradictions(now.Findings)):
		return "the candidate" + inParentheses(outputs) + after
	case was.Trust != now.Trust:
		return "the set of trusted validators" + after
	case was.CurrentID != now.CurrentID:
		return "the active savepoint" + after
	case was.Root.Real != now.Root.Real:
		return fmt.Sprintf("the path of the restore root %q led to %q, and now leads to %q", now.Root.Path, was.Root.Real, now.Root.Real)
	case !maps.Equal(r.kept.Names, again.names):
		return r.changedRoot(again)
	case was.Privacy.Rules != now.Privacy.Rules || was.Privacy.Runs != now.Privacy.Runs || was.Identity.Rules != now.Identity.Rules:
		return "the list of restricted names" + after
	}
	if text := changedConflicts(was.Conflicts, now.Conflicts); text != "" {
		return text
	}
	return "what it shows" + after
}

// changedRoot returns what changed at the paths of the plan, with the times.
func (r *Record) changedRoot(again *Preview) string {
	root := again.block.Root.Path
	changes := changedNames(r.kept.Names, again.names)
	if len(changes) == 0 {
		return fmt.Sprintf("the restore root %q changed after it was made", root)
	}
	text := strings.Join(changes[:min(len(changes), maxChanged)], ", ")
	if more := len(changes) - maxChanged; more > 0 {
		text += ", and " + visible.Count(more, "more path") + " changed"
	}
	return fmt.Sprintf("in the restore root %q, %s", root, text)
}

// A sight is what was found at a name beneath the restore root.
type sight struct {
	Mode     fs.FileMode `json:"mode"`
	Size     int64       `json:"size,omitzero"`
	UID      uint32      `json:"uid"`
	GID      uint32      `json:"gid"`
	ID       string      `json:"id"` // device and inode
	Modified string      `json:"modified,omitzero"`
	Changed  string      `json:"changed,omitzero"` // the inode change time
}

// changedNames returns a sentence for each name that changed, in the order of the names. Beneath a
// directory that was removed, created or replaced no other name is listed.
func changedNames(was, now map[string]sight) (texts []string) {
	all := maps.Clone(was)
	maps.Copy(all, now)
	var above []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		before, wasThere := was[name]
		after, isThere := now[name]
		if before == after && wasThere == isThere || slices.ContainsFunc(above, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
			continue
		}
		if before.ID != after.ID && name != rootPlace {
			above = append(above, strings.TrimSuffix(name, "/")+"/")
		}
		text := strconv.Quote(strings.TrimSuffix(name, "/"))
		if name == rootPlace {
			text = "its own directory"
		}
		switch {
		case !wasThere:
			texts = append(texts, text+" was created"+after.when(after.Changed))
		case !isThere:
			texts = append(texts, text+" was removed")
		default:
			texts = append(texts, text+" "+before.into(&after))
		}
	}
	return texts
}

// into returns what happened to a name at which something else was found later.
func (s *sight) into(now *sight) string {
	switch {
	case s.Mode.Type() != now.Mode.Type():
		return "was replaced by " + typeText(now.Mode) + now.when(now.Changed)
	case s.ID != now.ID:
		return "was replaced by another " + strings.TrimPrefix(strings.TrimPrefix(typeText(now.Mode), "an "), "a ") + now.when(now.Changed)
	case s.UID != now.UID:
		return fmt.Sprintf("belonged to %s, and now belongs to %s", machine.UserText(int(s.UID)), machine.UserText(int(now.UID)))
	case s.GID != now.GID:
		return fmt.Sprintf("was of group %d, and is now of group %d", s.GID, now.GID)
	case s.Size != now.Size || s.Modified != now.Modified:
		return "was changed" + now.when(now.Modified)
	case s.Mode != now.Mode:
		return fmt.Sprintf("had mode %v, and now has mode %v", s.Mode, now.Mode)
	}
	return "was changed" + now.when(now.Changed)
}

// when returns the end of a sentence with a time of this name; "" for a directory, which has none.
func (s *sight) when(recorded string) string {
	t, err := time.Parse(time.RFC3339Nano, recorded)
	if err != nil {
		return ""
	}
	return t.UTC().Format(" on 2006-01-02 at 15:04:05 UTC")
}

func typeText(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "a file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	}
	return "a special file"
}

// changedConflicts names a conflict that only one of two previews has; "" for none.
func changedConflicts(was, now []Conflict) string {
	lacks := func(all []Conflict, c Conflict) bool {
		return !slices.ContainsFunc(all, func(o Conflict) bool { return o.Type == c.Type && o.Path == c.Path && o.Current == c.Current })
	}
	for _, c := range now {
		if lacks(was, c) {
			return fmt.Sprintf("it has no %s on %q (%s)", c.Type, c.Path, c.Current)
		}
	}
	for _, c := range was {
		if lacks(now, c) {
			return fmt.Sprintf("its %s on %q is gone", c.Type, c.Path)
		}
	}
	return ""
}

// maxChanged is how many of the paths that changed are named.
const maxChanged = 3

// inParentheses names the first of some paths, in parentheses; "" for none.
func inParentheses(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	var named []string
	for _, path := range paths[:min(len(paths), maxChanged)] {
		named = append(named, strconv.Quote(path))
	}
	text := strings.Join(named, ", ")
	if more := len(paths) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return " (" + text + ")"
}

// differentOutputs returns the paths of outputs that two previews propose differently, or that only one of
// them has because the candidate differs, in order.
func differentOutputs(was, now []Item) (paths []string) {
	before := make(map[string]*Item, len(was))
	for n := range was {
		before[was[n].Path] = &was[n]
	}
	for n := range now {
		if old := before[now[n].Path]; old != nil && !sameOutput(*old, now[n]) {
			paths = append(paths, now[n].Path)
		}
	}
	slices.Sort(paths)
	return paths
}

// contradictions are the findings that the candidate alone decides: that of a change set or a block table
// which cannot be used removes all items.
func contradictions(findings []quarantine.Finding) []quarantine.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f quarantine.Finding) bool { return f.Rule != quarantine.Contradiction })
}
