package staging

import (
	"errors"
	"io/fs"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Unfinished lists the staging directories of the attempts that are at work in a
// root, or were left there: by their names alone, and without a lock. Parent is the
// directory that the root stands in under name, where an exchange of the whole root
// is; nil when nobody can look there.
func Unfinished(root, parent *pathsafe.Dir, name string) ([]string, error) {
	all, err := root.Names()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, n := range all {
		_, commits := attemptOf(n)
		_, exchanges := exchangeOf(n)
		if commits || exchanges {
			found = append(found, n)
		}
	}
	if parent == nil || name == "" {
		return found, nil
	}
	whole := rootExchangeName(name)
	_, err = parent.Lstat(whole)
	switch {
	case err == nil:
		found = append(found, whole)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return found, nil
}
