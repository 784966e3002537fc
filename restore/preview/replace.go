package preview

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/statement"
	"golang.org/x/sys/unix"
)

// replacement is what a preview says of replacements beside its items.
type replacement struct {
	// Artifacts are the result artifacts of the active savepoint's commit that are displaced.
	Artifacts []displacedArtifact `json:"displaced_artifacts"`
}

type displacedArtifact struct {
	Path   string `json:"item"`
	SHA256 string `json:"sha256"`
}

// before is an existing file that is replaced or removed.
type before struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Mode   string `json:"mode"`  // permission bits, four octal digits
	Owner  uint32 `json:"owner"` // user id
	Time   string `json:"modified"`
	// ModeOnly: it has the signed bytes, and other executable bits, which only a change set signs.
	ModeOnly bool `json:"mode_only"`
}

// takesAway reports whether an item displaces an existing file.
func (i *item) takesAway() bool { return i.Class == replaces || i.Class == removes }

// isFree reports whether nothing hinders an item: nothing is at its target, or what is there
// stays, or is replaced.
func (i *item) isFree() bool { return i.Class == create || i.free }

// differs reports whether a file with other content is at the target of an item.
func (i *item) differs() bool {
	return i.Class == different || i.Class == removes || i.Class == replaces && !i.Before.ModeOnly || i.isDiverged() && i.Before != nil
}

// stands enters the file that stands at the target of an item.
func (i *item) stands(t *restore.Target) {
	i.Class, i.free = identical, true
	if t.Identical {
		return
	}
	i.Class = replaces
	if t.Removed {
		i.Class = removes
	}
	i.Before = &before{hashText(t.Digest), t.Stat.Size, fmt.Sprintf("%04o", t.Stat.Perm), t.Stat.UID, timeText(t.Stat.ModTime), t.ModeOnly}
	if t.Removed {
		i.linked(t)
		return
	}
	was, comes := t.Stat.Perm&0o777, uint32(i.perm)
	more := ""
	if comes&^was&0o077 != 0 {
		more, i.opens = ", and gives other users more access", true
	}
	signed := "which is not signed"
	if i.signedBits {
		signed = "of which the executable bits are signed"
	}
	switch {
	case t.ModeOnly:
		i.Reason = joined(i.Reason, fmt.Sprintf("only its mode changes, from %04o to %04o, %s%s", was, comes, signed, more))
	case was != comes:
		i.Reason = joined(i.Reason, fmt.Sprintf("its mode changes from %04o to %04o, %s%s", was, comes, signed, more))
	}
	if t.Stat.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		i.Reason = joined(i.Reason, "the existing file has set-id bits, which the new one does not get")
	}
	i.linked(t)
}

func (i *item) linked(t *restore.Target) {
	if t.Stat.Links > 1 {
		i.Reason = joined(i.Reason, fmt.Sprintf("the existing file has %d names, and the others keep the old content; a rollback brings it back as a file of its own", t.Stat.Links))
	}
}

// CouldReplace reports whether an existing file at a proposed item may be replaced with
// [Asked].Replace, which was not requested. Only a preview that requests it decides that.
func (p *Preview) CouldReplace() bool {
	return !p.restore.Replaces() && slices.ContainsFunc(p.block.Items, func(i item) bool { return i.Class == different || i.Class == identical })
}

func hashText(digest [sha256.Size]byte) string { return "sha256:" + hex.EncodeToString(digest[:]) }

// replacement is nil unless it was asked for.
func (d *deciding) replacement() *replacement {
	if !d.restore.Replaces() {
		return nil
	}
	r := &replacement{Artifacts: []displacedArtifact{}}
	for _, t := range d.restore.Targets() {
		if isResult(t.Path.String()) {
			r.Artifacts = append(r.Artifacts, displacedArtifact{t.Path.String(), hashText(t.Digest)})
		}
	}
	return r
}

// replacedText is the part of a plan that is about what exists.
func (d *deciding) replacedText(p plan) []string {
	of := func(c class, isRemoval bool) string {
		return statement.FormatItems(slices.DeleteFunc(slices.Clone(p.restores), func(n int) bool {
			i := &d.items[n-1]
			return i.Class != c || !i.free || i.removed != isRemoval
		}))
	}
	removed := of(removes, true)
	parts := []string{"replace nothing"}
	if replaced := of(replaces, false); replaced != "" {
		parts[0] = "replace what is at the targets of " + replaced + ", which a rollback brings back"
	}
	same, gone := of(identical, false), of(identical, true)
	if same != "" {
		parts = append(parts, "leave what is at the targets of "+same+" as it is, which is identical")
	}
	if gone != "" {
		parts = append(parts, "do nothing for "+gone+", which is gone already")
	}
	if r := d.replacement(); r != nil && len(r.Artifacts) > 0 {
		var names []string
		for _, a := range r.Artifacts {
			names = append(names, a.Path)
		}
		parts = append(parts, "displace "+strings.Join(names, " and ")+" of the active savepoint's commit")
	}
	if removed == "" {
		return append(parts, "remove nothing")
	}
	return append(parts, "remove what is at the targets of "+removed+", which a rollback brings back")
}

// observedText says what was looked at.
func (d *deciding) observedText() string {
	if d.restore.Replaces() {
		return "the targets, and the directories that lead there, were observed before and after, and are the same"
	}
	return "the restore root was observed before and after, and is the same"
}

// sameTarget reports whether a restore finds at a target what the preview has shown.
func (p *Preview) sameTarget(r *restore.Restore, path string) bool {
	was, is := p.restore.Target(path), r.Target(path)
	before, wasDiverged := p.restore.Divergence(path)
	now, isDiverged := r.Divergence(path)
	switch {
	case wasDiverged != isDiverged || before.State != now.State:
		return false
	case was == nil || is == nil:
		return was == is && p.restore.Replaces() == r.Replaces()
	}
	return was.Is(is) && was.Identical == is.Identical && was.Removed == is.Removed
}

func (p *Preview) sameArtifacts(r *restore.Restore) bool {
	for run := range r.Plan().Runs() {
		for _, a := range run.Artifacts() {
			if !p.sameTarget(r, a.Path) {
				return false
			}
		}
	}
	return true
}

// observeFor looks at what an approval of a restore binds: everything beneath the restore
// root, or, where existing files are replaced, what is at the paths of the plan and the
// directories that lead there (D23): whatever else happens in the root does not matter then.
func observeFor(ctx context.Context, r *restore.Restore, name string) (observed, error) {
	if !r.Replaces() {
		return observe(ctx, r.Root(), name)
	}
	root := r.Root()
	o, err := observeRoot(root, name)
	if err != nil {
		return observed{}, err
	}
	state, witness := sha256.New(), sha256.New()
	l := looking{root: root, seen: map[string]bool{}}
	defer l.leave()
	l.look = func(rel string, st pathsafe.Stat, err error) {
		switch {
		case err != nil: // nothing is there, or nothing can be reached there
			_, _ = fmt.Fprintf(state, "%q absent\n", rel)
		case st.Mode.IsDir(): // its times are those of others' work in it
			describe(state, rel, st)
			_, _ = fmt.Fprintf(witness, "%q %v %d:%d %d %d\n", rel, st.Mode, st.UID, st.GID, st.ID.Dev, st.ID.Ino)
		default:
			describe(state, rel, st)
			identify(witness, rel, st)
		}
	}
	l.look("", o.root, nil)
	for run := range r.Plan().Runs() {
		var paths []string
		for o := range run.Bundle().Outputs() {
			paths = append(paths, run.Target(o.Path().String()))
		}
		for _, a := range run.Artifacts() {
			paths = append(paths, a.Path)
		}
		for _, path := range r.Plan().Removes() {
			paths = append(paths, path.String())
		}
		for _, path := range paths {
			if err := ctx.Err(); err != nil {
				return observed{}, err
			}
			if err := l.along(path); err != nil {
				return observed{}, err
			}
		}
	}
	o.state, o.witness = hex.EncodeToString(state.Sum(nil)), hex.EncodeToString(witness.Sum(nil))
	return o, nil
}

// looking looks at names beneath a restore root, each once.
type looking struct {
	root   *pathsafe.Dir
	look   func(rel string, st pathsafe.Stat, err error)
	seen   map[string]bool
	parent *pathsafe.Dir // the directory that was entered last, in which the next name is, mostly; may be nil
	at     string        // its path
}

// along looks at every name on the way to a target, and at the target.
func (l *looking) along(path string) error {
	p, err := pathsafe.Parse(path)
	if err != nil {
		return err
	}
	names := p.Components()
	for n, name := range names {
		rel := strings.Join(names[:n+1], "/")
		if l.seen[rel] {
			continue
		}
		l.seen[rel] = true
		var st pathsafe.Stat
		err := l.enter(p, n)
		if err == nil {
			st, err = l.parent.Lstat(name)
		}
		nothing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, pathsafe.ErrCrossesMount) || errors.Is(err, pathsafe.ErrEscape)
		if err != nil && !nothing {
			return err
		}
		l.look(rel, st, err)
	}
	return nil
}

// enter opens the directory made of the first n components of a path.
func (l *looking) enter(p pathsafe.Path, n int) (err error) {
	at := strings.Join(p.Components()[:n], "/")
	if l.parent != nil && l.at == at {
		return nil
	}
	l.leave()
	l.parent, err = l.root.OpenParent(p, n)
	l.at = at
	return err
}

func (l *looking) leave() {
	if l.parent != nil {
		l.parent.Close()
		l.parent = nil
	}
}
