package savepoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// slot is the name of a savepoint's run directory.
type slot struct {
	sequence int
	attempt  string
}

func (s slot) name() string { return fmt.Sprintf("%06d-%s", s.sequence, s.attempt) }

// parseSlot reads a name, which must print as the very same.
func parseSlot(name string) (slot, error) {
	number, attempt, _ := strings.Cut(name, "-")
	sequence, err := strconv.Atoi(number)
	s := slot{sequence, attempt}
	if err != nil || sequence < 1 || s.name() != name {
		return slot{}, errors.New("not the name of a savepoint")
	}
	return s, checkAttempt(attempt)
}

// checkAttempt requires the usual form of a UUID.
func checkAttempt(attempt string) error {
	id, err := uuid.Parse(attempt)
	if err == nil && id.String() != attempt {
		err = errors.New("not in canonical form")
	}
	if err != nil {
		return fmt.Errorf("attempt %.100q: %w", attempt, err)
	}
	return nil
}

// slots are the savepoints of the chain in their order.
func (c *chain) slots() ([]slot, error) {
	names, err := c.published.Names()
	if err != nil {
		return nil, err
	}
	slots, err := c.parseAll(published, names)
	if err != nil {
		return nil, err
	}
	for i := range slots {
		if i > 0 && slots[i-1].sequence == slots[i].sequence {
			return nil, damage(c.runDir(published, slots[i]), fmt.Errorf("number %d is used twice", slots[i].sequence))
		}
	}
	return slots, nil
}

// pending are the prepared ones in their order. What has no name of one is none.
func (c *chain) pending() ([]slot, error) {
	slots, _, err := c.slotsIn(prepared)
	return slots, err
}

func (c *chain) parseAll(where string, names []string) ([]slot, error) {
	slots := make([]slot, 0, len(names))
	for _, name := range names {
		s, err := parseSlot(name)
		if err != nil {
			return nil, damage(filepath.Join(c.path, where, name), err)
		}
		slots = append(slots, s)
	}
	slices.SortFunc(slots, compareSlots)
	return slots, nil
}

func compareSlots(a, b slot) int {
	return cmp.Or(cmp.Compare(a.sequence, b.sequence), strings.Compare(a.attempt, b.attempt))
}

// findSlot finds that of an attempt.
func findSlot(slots []slot, attempt string) (slot, bool) {
	i := slices.IndexFunc(slots, func(s slot) bool { return s.attempt == attempt })
	if i < 0 {
		return slot{}, false
	}
	return slots[i], true
}

func (c *chain) runDir(where string, s slot) string {
	return filepath.Join(c.path, where, s.name())
}

func (c *chain) dirOf(where string) *pathsafe.Dir {
	switch where {
	case prepared:
		return c.prepared
	case retired:
		return c.retired
	}
	return c.published
}

// tip is the newest savepoint.
func (c *chain) tip() (Savepoint, bool, error) {
	slots, err := c.slots()
	if err != nil || len(slots) == 0 {
		return Savepoint{}, false, err
	}
	sp, err := c.load(published, slots[len(slots)-1])
	return sp, err == nil, err
}

func (c *chain) list() ([]Savepoint, error) {
	slots, err := c.slots()
	if err != nil {
		return nil, err
	}
	return c.loadAll(published, slots)
}

func (c *chain) loadAll(where string, slots []slot) ([]Savepoint, error) {
	all := make([]Savepoint, 0, len(slots))
	for _, s := range slots {
		sp, err := c.load(where, s)
		if err != nil {
			return nil, err
		}
		all = append(all, sp)
	}
	return all, nil
}

// found is the content of a slot.
type found struct {
	slot
	where  string
	sp     Savepoint
	damage *DamageError // of what cannot be read as a savepoint; sp is zero then
}

// slotsIn are the slots of one of the directories in their order, and what has no name of
// one.
func (c *chain) slotsIn(where string) (slots []slot, strange []*DamageError, err error) {
	if c.dirOf(where) == nil {
		return nil, nil, nil
	}
	names, err := c.dirOf(where).Names()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		s, err := parseSlot(name)
		if err != nil {
			strange = append(strange, &DamageError{RunDir: filepath.Join(c.path, where, name), Err: err, Retired: where == retired})
			continue
		}
		slots = append(slots, s)
	}
	slices.SortFunc(slots, compareSlots)
	return slots, strange, nil
}

// isUnread reports whether an error is that one file or directory cannot be read: the others can.
func isUnread(err error) bool { return machine.IsUnreadable(err) || errors.Is(err, fs.ErrPermission) }

// survey returns the savepoints of the chain, and then those retired from it, in the order
// of their slots; and what has no name of a slot.
func (c *chain) survey() (all []found, strange []*DamageError, err error) {
	for _, where := range []string{published, retired} {
		slots, some, err := c.slotsIn(where)
		if err != nil {
			return nil, nil, err
		}
		strange = append(strange, some...)
		for _, s := range slots {
			f := found{slot: s, where: where}
			f.sp, err = c.load(where, s)
			if isUnreadable := isUnread(err); err != nil && !errors.As(err, &f.damage) && !isUnreadable {
				return nil, nil, err
			} else if isUnreadable {
				f.damage = &DamageError{RunDir: c.runDir(where, s), Err: err}
			}
			if f.damage != nil {
				f.damage.Attempt, f.damage.Sequence, f.damage.Retired = s.attempt, s.sequence, where == retired
			}
			all = append(all, f)
		}
	}
	return all, strange, nil
}
