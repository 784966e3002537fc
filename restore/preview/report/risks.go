package report

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/privacy"
	"github.com/spectrumfs/spectrum/restore/scope"
)

// MaxListed is the number of files that a row of risks names, and maxListedName the columns of each name.
const (
	MaxListed     = 3
	maxListedName = 40
)

// those returns the risky proposed items, the most dangerous first, so that the author of a candidate cannot
// choose which of them a summary names.
func (p *Report) those(risky func(*preview.Item) bool) (items []*preview.Item) {
	for n := range p.Block.Items {
		if i := &p.Block.Items[n]; risky(i) {
			items = append(items, i)
		}
	}
	slices.SortStableFunc(items, func(a, b *preview.Item) int {
		return cmp.Or(dangerOf(a)-dangerOf(b), strings.Count(a.Path, "/")-strings.Count(b.Path, "/"))
	})
	return items
}

// dangerOf ranks an item by what it may run: the lower, the more dangerous.
func dangerOf(i *preview.Item) int {
	if strings.Contains(i.Runs, preview.SetIDSource) {
		return -1
	}
	return privacy.Danger(i.Runs)
}

// running returns the items that may run by themselves.
func (p *Report) running() []*preview.Item {
	return p.those(func(i *preview.Item) bool { return i.Runs != "" })
}

// opened returns the items whose new files more users may read, write or run.
func (p *Report) opened() []*preview.Item {
	return p.those(func(i *preview.Item) bool { return i.Opens })
}

// writable returns the created items that every user may write.
func (p *Report) writable() []*preview.Item { return p.those(isWritable) }

// isWritable reports whether an item is created and every user may write it.
func isWritable(i *preview.Item) bool {
	return i.Class == preview.Create && strings.ContainsAny(i.Mode[max(0, len(i.Mode)-1):], "2367")
}

// secrets returns the items that may hold secrets and that are written, removed or in conflict.
func (p *Report) secrets() []*preview.Item {
	return p.those(func(i *preview.Item) bool { return i.Scope == scope.RestrictedContext && classOf(i).acts() })
}

// userPlaces are the paths of a restore that another user or group controls.
type userPlaces struct {
	by    string // as people read it
	paths []string
}

// othersPlaces returns the places of other users, by user, in the order of the register.
func (p *Report) othersPlaces() (all []userPlaces) {
	for n := range p.Block.Conflicts {
		for _, at := range p.Block.Conflicts[n].Places {
			by := withNames(at.By)
			k := slices.IndexFunc(all, func(u userPlaces) bool { return u.by == by })
			if k < 0 {
				k, all = len(all), append(all, userPlaces{by: by})
			}
			path := at.Path
			if path == "." {
				path = p.Block.Root.Real
			}
			if !slices.Contains(all[k].paths, path) {
				all[k].paths = append(all[k].paths, path)
			}
		}
	}
	return all
}

// othersText names the places that each other user controls; "" for none.
func (p *Report) othersText() string {
	var users []string
	for _, u := range p.othersPlaces() {
		var names []string
		for _, path := range u.paths[:min(len(u.paths), MaxListed)] {
			names = append(names, cut(name(path), maxListedName))
		}
		if more := len(u.paths) - len(names); more > 0 {
			names = append(names, visible.Count(more, "other place"))
		}
		users = append(users, u.by+" can change "+strings.Join(names, ", "))
	}
	return strings.Join(users, "; ")
}

// userNumber matches a user in the text of a conflict.
var userNumber = regexp.MustCompile(`\buser (\d+)\b`)

// withNames returns a text with the names of users added to their numbers.
func withNames(text string) string {
	return userNumber.ReplaceAllStringFunc(text, func(user string) string {
		uid, err := strconv.Atoi(strings.TrimPrefix(user, "user "))
		if err != nil {
			return user
		}
		return machine.UserText(uid)
	})
}

// namesOf returns the names of the first items and the number of the others; "" for none.
func namesOf(items []*preview.Item) string {
	var names []string
	for _, i := range items[:min(len(items), MaxListed)] {
		text := cut(name(i.Path), maxListedName)
		if strings.Contains(i.Runs, preview.Executable) {
			text += " (executable)"
		}
		if isWritable(i) {
			text += " (" + i.Mode + ")"
		}
		names = append(names, text)
	}
	if others := len(items) - len(names); others > 0 {
		names = append(names, visible.Count(others, "other file"))
	}
	return strings.Join(names, ", ")
}
