package staging

import (
	"github.com/spectrumfs/spectrum/pathsafe"
)

// Leftovers lists the staging directories of the attempts that are at work in a
// root, or were left there, and then the lock: by their names alone, and without taking it.
func Leftovers(root *pathsafe.Dir) ([]string, error) {
	all, err := root.Names()
	if err != nil {
		return nil, err
	}
	var found, lock []string
	for _, n := range all {
		if _, kind := attemptOf(n); kind != "" {
			found = append(found, n)
		}
		if n == LockName {
			lock = append(lock, n)
		}
	}
	return append(found, lock...), nil
}
