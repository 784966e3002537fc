package preview

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// Replacement is the section of a preview about replacements, beside its items.
type Replacement struct {
	// Artifacts are the result artifacts of the active savepoint's commit that are displaced.
	Artifacts []DisplacedArtifact `json:"displaced_artifacts"`
}

// DisplacedArtifact is a result artifact that is displaced.
type DisplacedArtifact struct {
	Path   string `json:"item"`
	SHA256 string `json:"sha256"`
}

// Before is an existing file that is replaced or removed.
type Before struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Mode   string `json:"mode"`  // permission bits, four octal digits
	Owner  uint32 `json:"owner"` // user id
	Time   string `json:"modified"`
	// ModeOnly: it has the signed bytes, and other executable bits, which only a change set signs.
	ModeOnly bool `json:"mode_only"`
}

// TakesAway reports whether an item replaces or removes an existing file.
func (i *Item) TakesAway() bool { return i.Class == Replaces || i.Class == Removes }

// IsFree reports whether nothing blocks an item: its target does not exist, or stays, or is replaced.
func (i *Item) IsFree() bool { return i.Class == Create || i.free }

// Differs reports whether a file with other content is at the target of an item.
func (i *Item) Differs() bool {
	return i.Class == Different || i.Class == Removes || i.Class == Replaces && !i.Before.ModeOnly || i.IsDiverged() && i.Before != nil
}

// stands records the existing file at the target of an item.
func (i *Item) stands(t *restore.Target) {
	i.Class, i.free = Identical, true
	if t.Identical {
		return
	}
	i.Class = Replaces
	if t.Removed {
		i.Class = Removes
	}
	i.Before = &Before{hashText(t.Digest), t.Stat.Size, fmt.Sprintf("%04o", t.Stat.Perm), t.Stat.UID, timeText(t.Stat.ModTime), t.ModeOnly}
	hasSetID := t.Stat.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0
	if t.Removed {
		if hasSetID {
			i.Reason = joined(i.Reason, "the existing file has set-id bits")
		}
		i.linked(t)
		return
	}
	was, comes := t.Stat.Perm&0o777, uint32(i.perm)
	more := ""
	if comes&^was&0o077 != 0 {
		more, i.Opens = ", and gives other users more access", true
	}
	signed := "which is not signed"
	switch {
	case i.signedMode:
		signed = "which is signed"
	case i.signedBits:
		signed = "of which the executable bits are signed"
	}
	switch {
	case t.ModeOnly:
		i.Reason = joined(i.Reason, fmt.Sprintf("only its mode changes, from %04o to %04o, %s%s", was, comes, signed, more))
	case was != comes:
		i.Reason = joined(i.Reason, fmt.Sprintf("its mode changes from %04o to %04o, %s%s", was, comes, signed, more))
	}
	if hasSetID {
		i.Reason = joined(i.Reason, "the existing file has set-id bits, which the new one does not get")
	}
	i.linked(t)
}

func (i *Item) linked(t *restore.Target) {
	if t.Stat.Links > 1 {
		i.Reason = joined(i.Reason, fmt.Sprintf("the existing file has %d hard links, and the others keep the old content; a rollback restores it as a separate file", t.Stat.Links))
	}
}

// CouldReplace reports whether a preview with [Requested].Replace, which this one does not have, might replace
// an existing file.
func (p *Preview) CouldReplace() bool {
	return !p.restore.Replaces() && slices.ContainsFunc(p.block.Items, func(i Item) bool { return i.Class == Different || i.Class == Identical })
}

func hashText(digest [sha256.Size]byte) string { return "sha256:" + hex.EncodeToString(digest[:]) }

// replacement returns nil unless replacements are allowed.
func (d *deciding) replacement() *Replacement {
	if !d.restore.Replaces() {
		return nil
	}
	r := &Replacement{Artifacts: []DisplacedArtifact{}}
	for _, t := range d.restore.Targets() {
		if restore.IsResult(t.Path.String()) {
			r.Artifacts = append(r.Artifacts, DisplacedArtifact{t.Path.String(), hashText(t.Digest)})
		}
	}
	return r
}

// replacedText returns the part of a plan about existing files.
func (d *deciding) replacedText(p selection) []string {
	of := func(c Class, isRemoval bool) string {
		return statement.FormatItems(slices.DeleteFunc(slices.Clone(p.restores), func(n int) bool {
			i := &d.items[n-1]
			return i.Class != c || !i.free || i.Removed != isRemoval
		}))
	}
	removed := of(Removes, true)
	parts := []string{"replace nothing"}
	if replaced := of(Replaces, false); replaced != "" {
		parts[0] = "replace what is at the targets of " + replaced + ", which a rollback brings back"
	}
	same, gone := of(Identical, false), of(Identical, true)
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

// observedText returns what was compared before and after the preview.
func (d *deciding) observedText() string {
	if d.restore.Replaces() {
		return "the targets, and the directories that lead there, were compared before and after, and did not change"
	}
	return "the restore root was compared before and after, and did not change"
}

// sameTarget reports whether a restore finds the same target that the preview has shown.
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
