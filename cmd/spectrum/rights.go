package main

import (
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// rights is what other users get from restored files: they own them, or run them with rights that they do
// not have.
type rights struct {
	owners   []snapshot.Owner
	programs []snapshot.Program
}

// rightsIn returns those of a whole snapshot.
func rightsIn(found *snapshot.Snapshot) rights {
	all := slices.Collect(found.Entries())
	return rights{snapshot.OwnersOf(all), snapshot.ProgramsOf(all)}
}

// programLines name the programs, before or after the files are restored.
func (r rights) programLines(done bool) (lines []string) {
	runs := "would run"
	if done {
		runs = "runs"
	}
	for _, p := range r.programs {
		lines = append(lines, fmt.Sprintf("%s %s with the rights %s", shortPath(p.Path), runs, p.Rights))
	}
	return lines
}

// ownerLines name the owners, before or after the files are restored.
func (r rights) ownerLines(done bool) (lines []string) {
	for _, o := range r.owners {
		belongs := "would belong"
		switch {
		case done && o.Names == 1:
			belongs = "belongs"
		case done:
			belongs = "belong"
		}
		lines = append(lines, fmt.Sprintf("%s %s to user %d, as in the snapshot: %s", numberOf(o.Names, "restored name"), belongs, o.UID, shortPathOf(o.First, o.Names)))
	}
	return lines
}

func shortPathOf(first string, names int) string {
	if first == "" {
		first = "."
	}
	if names == 1 {
		return shortPath(first)
	}
	return "the first is " + shortPath(first)
}

// tell names all of it.
func (r rights) tell(a *app, done bool) {
	a.tellFew(r.programLines(done))
	a.tellFew(r.ownerLines(done))
}

// addTo adds the same for a program.
func (r rights) addTo(fields map[string]any) {
	if len(r.owners) > 0 {
		all := []any{}
		for _, o := range r.owners {
			all = append(all, map[string]any{"first": jsonText(o.First), "names": o.Names, "user": int64(o.UID)})
		}
		fields["owners"] = all
	}
	if len(r.programs) > 0 {
		all := []any{}
		for _, p := range r.programs {
			all = append(all, map[string]any{"path": jsonText(p.Path), "rights": p.Rights})
		}
		fields["programs"] = all
	}
}
