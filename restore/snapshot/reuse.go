package snapshot

import (
	"context"
	"slices"
)

// reuse takes over from the newest snapshot the content of files that have not changed, if it
// is in the store: by its name, or before an action by reading it.
func (t *take) reuse(ctx context.Context, entries []Entry) error {
	if !t.tracked || !slices.ContainsFunc(entries, func(e Entry) bool { return e.unread }) {
		return nil
	}
	same := t.base().unchanged(entries)
	if t.looks {
		return takeOver(same, func(*Entry) (bool, error) { return true, nil })
	}
	var displaced []versions
	if t.strict() {
		displaced, same = t.displaced(same)
	}
	sound, err := t.objects.read(ctx, displaced)
	if err == nil {
		err = takeOver(displaced, sound)
	}
	if err != nil {
		return err
	}
	there, err := t.objects.among(len(same))
	if err != nil {
		return err
	}
	return takeOver(same, there)
}

// takeOver takes over the content of files whose content is known.
func takeOver(same []versions, known func(*Entry) (bool, error)) error {
	for _, s := range same {
		ok, err := known(s.then)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		s.now.Digest, s.now.Sparse, s.now.xattrs = s.then.Digest, s.then.Sparse, s.then.xattrs
		s.now.unread = false
	}
	return nil
}

// displaced separates the files that the action may displace from those that the root has as it
// shall have them.
func (t *take) displaced(same []versions) (displaced, stays []versions) {
	if t.req.Becomes == nil {
		return same, nil
	}
	target := t.req.Becomes.entries
	for _, s := range same {
		for len(target) > 0 && comparePaths(target[0].Path, s.now.Path) < 0 {
			target = target[1:]
		}
		isOne := s.then.Links == 0 && len(target) > 0 && target[0].Links == 0 // names of one file go together
		if isOne && target[0].Path == s.then.Path && target[0].Equal(*s.then) {
			stays = append(stays, s)
		} else {
			displaced = append(displaced, s)
		}
	}
	return displaced, stays
}
