package preview

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// A PlaceKind is how another user controls a [Place].
type PlaceKind string

// The kinds of places.
const (
	ParentPlace    PlaceKind = "parent"    // a name on the way to the restore root, which the user can rename or replace
	DirectoryPlace PlaceKind = "directory" // its entries can be renamed or replaced
	NamePlace      PlaceKind = "name"      // in a directory with the sticky bit; the user can rename or replace it
	LinkPlace      PlaceKind = "link"      // a symbolic link of the user
	FilePlace      PlaceKind = "file"      // a file of the user, which is replaced or removed
)

// rootPlace is the path of the restore root as a place.
const rootPlace = "."

// A Place is a name that another user controls and that an output passes or replaces.
type Place struct {
	Path  string    `json:"path"` // beneath the restore root, which is "."; that of a parent is absolute
	Kind  PlaceKind `json:"kind"`
	By    string    `json:"changed_by"` // as in [pathsafe.Loose]
	Owner uint32    `json:"owner"`      // user ID; that of a parent is of the directory that holds it
	Mode  string    `json:"mode"`       // four octal digits, of what Owner is of
}

// String returns a sentence about the place.
func (p Place) String() string {
	switch p.Kind {
	case DirectoryPlace:
		dir := strconv.Quote(p.Path)
		if p.Path == rootPlace {
			dir = "the restore root"
		}
		return fmt.Sprintf("%s can rename or replace the entries of %s, which belongs to user %d and has mode %s", p.By, dir, p.Owner, p.Mode)
	case LinkPlace:
		return fmt.Sprintf("%q is a symbolic link of %s", p.Path, p.By)
	case FilePlace:
		return fmt.Sprintf("%q belongs to %s, before and after the commit", p.Path, p.By)
	}
	return fmt.Sprintf("%s can rename or replace %q", p.By, p.Path)
}

// placesOf collects the places of one restore root, while a [lookup] passes them.
type placesOf struct {
	trusted  pathsafe.TrustedUsers
	real     string                                       // the absolute path of the root, without links
	renamers map[string]func(entry *pathsafe.Stat) string // by the directory
	at       map[string][]Place                           // by the name that a path passes; that of a directory ends in "/"
}

func newPlaces(real string) (*placesOf, error) {
	trusted, err := pathsafe.Trusted()
	return &placesOf{trusted, real, map[string]func(*pathsafe.Stat) string{}, map[string][]Place{}}, err
}

// enter notes a directory beneath the root; dir is "" for the root itself.
func (p *placesOf) enter(dir string, d *pathsafe.Dir, st pathsafe.Stat) error {
	of, err := p.trusted.Renamers(d, st)
	if err != nil {
		return err
	}
	p.renamers[dir] = of
	if by := of(nil); by != "" {
		p.at[dir+"/"] = append(p.at[dir+"/"], placeOf(dir, DirectoryPlace, by, st))
	}
	return nil
}

// pass notes an entry of the directory dir, which was entered.
func (p *placesOf) pass(dir, rel string, st pathsafe.Stat, isParent bool) {
	of := p.renamers[dir]
	if by := of(&st); by != "" && of(nil) == "" {
		p.at[rel] = append(p.at[rel], placeOf(rel, NamePlace, by, st))
	}
	by := fmt.Sprintf("user %d", st.UID)
	switch {
	case st.Mode&fs.ModeSymlink != 0 && isParent:
		p.follow(rel, st)
	case st.Mode.IsRegular() && !p.trusted.Has(st.UID):
		p.at[rel] = append(p.at[rel], placeOf(rel, FilePlace, by, st))
	}
}

// follow notes a link that leads to a directory and what is on its way. If the way cannot be followed,
// there is nothing to note: its targets are conflicts for another reason.
func (p *placesOf) follow(rel string, st pathsafe.Stat) {
	if !p.trusted.Has(st.UID) {
		p.at[rel] = append(p.at[rel], placeOf(rel, LinkPlace, fmt.Sprintf("user %d", st.UID), st))
	}
	root := strings.TrimSuffix(p.real, "/")
	way, err := pathsafe.WayTo(root + "/" + rel)
	if err != nil {
		return
	}
	for _, link := range way.Links {
		if at, ok := strings.CutPrefix(link.Path, root+"/"); ok && link.Own && at != rel {
			p.at[rel] = append(p.at[rel], Place{valid(at), LinkPlace, link.By, 0, "0777"})
		}
	}
	for _, l := range way.Loose {
		at, ok := strings.CutPrefix(l.Path, root+"/")
		if !ok || strings.HasPrefix(rel+"/", path.Dir(at)+"/") || path.Dir(at) == "." { // entered on the way of the path
			continue
		}
		p.at[rel] = append(p.at[rel], Place{valid(path.Dir(at)), DirectoryPlace, l.By, l.Owner, modeText(l.Perm)})
	}
}

// along returns the places that the path of an item passes or replaces, in their order. Beneath a
// directory that a user controls it lists only links and files of that user.
func (p *placesOf) along(i *Item) (found []Place) {
	if p == nil {
		return nil
	}
	found = append(found, p.at["/"]...)
	names := strings.Split(i.Path, "/")
	for n := range names {
		rel := strings.Join(names[:n+1], "/")
		found = append(append(found, p.at[rel]...), p.at[rel+"/"]...)
	}
	controls := map[string]bool{}
	return slices.DeleteFunc(found, func(at Place) bool {
		switch at.Kind {
		case FilePlace:
			return !i.TakesAway()
		case DirectoryPlace:
			known := controls[at.By]
			controls[at.By] = true
			return known
		case NamePlace:
			return controls[at.By]
		}
		return false
	})
}

func placeOf(rel string, kind PlaceKind, by string, st pathsafe.Stat) Place {
	return Place{cmp.Or(rel, rootPlace), kind, by, st.UID, modeText(st.Perm)}
}

func modeText(perm uint32) string { return fmt.Sprintf("%04o", perm&0o7777) }

// valid returns a path as JSON can have it.
func valid(path string) string { return strings.ToValidUTF8(path, "\uFFFD") }

// maxPlaces is how many places the text of a conflict has; the JSON has all of them.
const maxPlaces = 5

// places lists what other users control beneath the restore root, where an output is created, replaced
// or removed: one conflict for each user or group.
func (d *deciding) places() []Conflict {
	var conflicts []Conflict
	by, listed := map[string]int{}, map[Place]bool{}
	for n := range d.items {
		i := &d.items[n]
		if i.Class == Identical || !d.proposes(i) && !(i.IsDiverged() && i.Label == InConflict) {
			continue
		}
		for _, at := range d.found.places.along(i) {
			number, known := by[at.By]
			if !known {
				number, by[at.By] = len(conflicts), len(conflicts)
				about := at.Path
				if about == rootPlace {
					about = valid(d.found.way.Real)
				}
				conflicts = append(conflicts, Conflict{
					Type:       AuthorityConflict,
					Path:       about,
					Authority:  "an approval is for these paths, and another user decides what they lead to",
					Risk:       "restored files can be exchanged or moved away; a change before the commit makes this preview stale",
					Resolution: "chown or chmod these paths so that only root or you can change them, or reject the conflict to leave its files out",
				})
			}
			c := &conflicts[number]
			if !listed[at] {
				listed[at] = true
				c.Places = append(c.Places, at)
			}
			if len(c.Numbers) == 0 || c.Numbers[len(c.Numbers)-1] != i.Number {
				c.Numbers = append(c.Numbers, i.Number)
			}
		}
	}
	for n := range conflicts {
		c := &conflicts[n]
		var texts []string
		for _, at := range c.Places[:min(len(c.Places), maxPlaces)] {
			texts = append(texts, at.String())
		}
		if more := len(c.Places) - len(texts); more > 0 {
			texts = append(texts, "and "+visible.Count(more, "more place"))
		}
		c.Current = strings.Join(texts, "; ")
		c.Claim = "the restore would create, replace or remove " + visible.Count(len(c.Numbers), "file") + " there"
	}
	return conflicts
}
