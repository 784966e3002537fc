package staging

import (
	"github.com/spectrumfs/spectrum/pathsafe"
)

// Leftovers lists the staging directories of the attempts that are at work in a
// root, or were left there, as [Root.Unfinished] finds them, and then the lock: without taking it.
func Leftovers(root *pathsafe.Dir) ([]string, error) {
	all, err := root.Names()
	if err != nil {
		return nil, err
	}
	var found, lock []string
	in := on(root, &sysHook{})
	for _, n := range all {
		if in.stands(n) {
			found = append(found, n)
		}
		if n == LockName {
			lock = append(lock, n)
		}
	}
	return append(found, lock...), nil
}

// stands reports whether a name is that of an unfinished attempt, or of one that cannot be
// read.
func (d dir) stands(name string) bool {
	id, kind := attemptOf(name)
	if kind == "" {
		return false
	}
	a := &attempt{s: d.s, id: id, kind: kind, root: d, stageName: name}
	defer a.close()
	f, err := a.find()
	return err != nil || f.isOne
}
