package action

import (
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// closing is how long a commit may take, after its last name has appeared, to remove its staging
// directory and its lock, which changes the time of the root.
const closing = 5 * time.Second

// tick is how far apart the times are that one rename gives to a name and its directory.
const tick = 10 * time.Millisecond

// times plans that directories that stay, and from which an entry is removed, get the time
// from before the commit; or the present time, if something else has changed in one since.
// Only the owner or root can set it. Without any removal the root gets what it has, so that the undo
// is recorded all the same.
func (p *undoPlan) times(now *snapshot.Snapshot) (keep []staging.Swap) {
	if len(p.swaps) == 0 {
		return []staging.Swap{{New: metadataOf(now.Tree("")[0])}}
	}
	goes, newest := map[pathsafe.Path]bool{}, map[string]time.Time{}
	for _, s := range p.swaps {
		goes[s.Path] = true
	}
	note := func(path pathsafe.Path, at time.Time) {
		up, _ := path.Parent()
		dir := ""
		if up != (pathsafe.Path{}) {
			dir = up.String()
		}
		if !goes[up] && at.After(newest[dir]) {
			newest[dir] = at
		}
	}
	for _, s := range p.swaps {
		if s.Old != nil {
			note(s.Path, s.Old.ChangeTime)
		}
	}
	p.removals(now, note)
	for _, dir := range slices.Sorted(maps.Keys(newest)) {
		is := now.Tree(dir)
		if len(is) == 0 || is[0].Type != snapshot.Dir || !machine.IsSuper() && int(is[0].UID) != os.Geteuid() || NeedsRoot(is[0]) != "" {
			continue
		}
		e, by := is[0], newest[dir].Add(tick)
		if dir == "" {
			by = by.Add(closing)
		}
		for _, before := range p.befores {
			since := before.Header().Time.Add(-tick) // an older time is not of the commit
			if was := before.Tree(dir); len(was) > 0 && was[0].Type == snapshot.Dir && !is[0].ModTime.After(by) && !is[0].ModTime.Before(since) {
				e.ModTime = was[0].ModTime // the time from before the oldest is last
			}
		}
		if path, err := inRoot(dir); err == nil {
			keep = append(keep, staging.Swap{Path: path, New: metadataOf(e)})
		}
	}
	return keep
}

// removals notes for each file that a commit has removed a time at which that was over: before the
// first of the commit's result artifacts came, which are there now, or in the snapshot before the
// next commit.
func (p *undoPlan) removals(now *snapshot.Snapshot, note func(path pathsafe.Path, at time.Time)) {
	stays := map[string]bool{}
	for _, l := range p.left {
		stays[l.Path] = true
	}
	for _, before := range p.befores {
		var end time.Time
		for e := range now.Entries() {
			at, err := pathsafe.Parse(e.Path)
			if err == nil && e.Type == snapshot.File && isArtifact(at, nil) && (end.IsZero() || e.ChangeTime.Before(end)) {
				end = e.ChangeTime
			}
		}
		for was := range before.Entries() {
			n := p.top.find("/" + was.Path)
			if at, err := pathsafe.Parse(was.Path); err == nil && was.Asked && was.Type == snapshot.File && n != nil && n.removed && !stays[was.Path] {
				note(at, end)
			}
		}
		now = before
	}
}
