package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Mark returns where the log stands, as one line of text to be signed: the number
// of its last entry and the hash of that. The entry is durable.
func (l *Log) Mark() (string, error) {
	var mark string
	err := l.locked(func(at tail) error {
		mark = fmt.Sprintf("%d %s", at.last.Sequence, at.last.Hash)
		return l.f.Sync()
	})
	return mark, err
}

// parseMark is the inverse of [Log.Mark].
func parseMark(mark string) (sequence int64, hash string, ok bool) {
	number, hash, _ := strings.Cut(mark, " ")
	sequence, err := strconv.ParseInt(number, 10, 64)
	ok = err == nil && sequence >= 0 && strconv.FormatInt(sequence, 10) == number && isHash(hash)
	return sequence, hash, ok
}

// Unsealed are those savepoints that sign another log than this one: where they were made
// it had an entry that it has not any more. The first comes first, with the last entry that
// still fits. A savepoint that signs no mark is none of them.
func (l *Ledger) Unsealed(savepoints []Savepoint) []Misfit {
	var misfits []Misfit
	for _, sp := range savepoints {
		if sp.Mark == "" || l.accepted[sp.ID] {
			continue
		}
		m := Misfit{Savepoint: sp, Fault: Rewritten}
		sequence, hash, ok := parseMark(sp.Mark)
		m.Entry = sequence
		switch {
		case !ok:
			m.Fault = NoMark
		case sequence > int64(len(l.hashes)):
			m.Fault = NotReached
		case sequence == 0 && hash == genesis, sequence > 0 && l.hashes[sequence-1] == hash:
			continue
		}
		misfits = append(misfits, m)
	}
	slices.SortStableFunc(misfits, func(a, b Misfit) int { return cmp.Compare(a.Entry, b.Entry) })
	for i := range misfits {
		misfits[i].Fits = l.fits(savepoints, misfits[i].Entry)
	}
	return misfits
}

// fits is the last entry before another one that a savepoint bears out; 0 for none.
func (l *Ledger) fits(savepoints []Savepoint, before int64) (last int64) {
	for _, sp := range savepoints {
		sequence, hash, ok := parseMark(sp.Mark)
		if ok && 0 < sequence && sequence < min(before, int64(len(l.hashes))+1) && l.hashes[sequence-1] == hash {
			last = max(last, sequence)
		}
	}
	return last
}
