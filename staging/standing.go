package staging

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// errStood is the reason for an old entry that was not removed, if it does not show another one.
var errStood = errors.New("it could not be removed")

// standing returns the old entries that a change has not removed, as [Tx.Stayed] does, of one that was
// killed: their names show it. Errors affect only what is reported.
func (a *attempt) standing() []Stayed {
	if a.isCommit() { // it stops at the first
		return nil
	}
	for i := range a.swaps {
		s := &a.swaps[i]
		if !s.hasOld || s.hasNew {
			continue
		}
		in, err := a.root.open(parent(s.path))
		if err != nil {
			continue
		}
		if st, err := in.Stat(s.path.Base()); err == nil && s.old.is(st) {
			why := errStood
			if s.empty {
				why = cmp.Or(a.isEmpty(in, s.path.Base()), errStood)
			}
			a.stays(s, why)
		}
		in.Close()
	}
	return a.stayed
}

// keptAll returns the entries that were kept, also by an earlier, killed run. Errors affect only what is
// reported.
func (a *attempt) keptAll() (all []Kept) {
	names, err := a.shown()
	if err != nil {
		return nil
	}
	for _, name := range names {
		in, err := a.root.enter(name)
		if err != nil {
			continue
		}
		all = append(all, a.keptIn(in, name)...)
		in.Close()
	}
	return all
}

// keptIn returns the kept entries in a directory with this name: each is at its path or, if that was
// taken, at a number as [attempt.keepOne] makes it. Parent directories of such entries are left out.
func (a *attempt) keptIn(in dir, name string) (all []Kept) {
	add := func(s *swapping, at string) {
		k := Kept{Path: s.path, At: name + "/" + at, Earlier: true}
		if i := slices.IndexFunc(a.kept, func(now Kept) bool { return now.At == k.At }); i >= 0 {
			k = a.kept[i]
		}
		all = append(all, k)
	}
	leads := map[string]bool{}
	for _, i := range a.deepestSwaps() {
		path := outOfKept(a.swaps[i].path)
		if leads[path.String()] {
			continue
		}
		up, err := in.open(parent(path))
		if err != nil {
			continue
		}
		if _, err := up.Stat(path.Base()); err == nil {
			add(&a.swaps[i], path.String())
			leads[path.String()] = true
			for _, above := range parents(path) {
				leads[above.String()] = true
			}
		}
		up.Close()
	}
	names, err := in.Names()
	if err != nil {
		return all
	}
	slices.Sort(names)
	for _, at := range names {
		number, suffix, is := strings.Cut(at, "-")
		number, _, _ = strings.Cut(number, ".")
		i, err := strconv.Atoi(number)
		if _, bad := strconv.Atoi(suffix); is && err == nil && bad == nil && i >= 0 && i < len(a.swaps) && !leads[at] {
			add(&a.swaps[i], at)
		}
	}
	return all
}

// deepestSwaps returns the numbers of the swaps, of deeper paths first.
func (a *attempt) deepestSwaps() []int {
	all := make([]int, len(a.swaps))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(x, y int) int {
		return cmp.Compare(depth(a.swaps[y].path), depth(a.swaps[x].path))
	})
	return all
}
