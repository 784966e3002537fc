package preview

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// lookup examines names beneath a restore root, each once, and writes the results into the two digests of
// [observed].
type lookup struct {
	root           *pathsafe.Dir
	state, witness hash.Hash
	seen           map[string]bool
	nothing        string        // the last name that does not exist or cannot be reached; "" for none
	parent         *pathsafe.Dir // the directory that was entered last, which usually has the next name too; may be nil
	at             string        // its path
	places         *placesOf
	names          map[string]sight // what was found, by name; the name of the directory behind a link ends in "/"
}

func newLookup(root *pathsafe.Dir, places *placesOf) *lookup {
	return &lookup{root: root, places: places, state: sha256.New(), witness: sha256.New(), seen: map[string]bool{}, names: map[string]sight{}}
}

// along examines every name on the way to a path, and the path. It skips names beneath one that does not
// exist.
func (l *lookup) along(path string) error {
	if l.nothing != "" && strings.HasPrefix(path, l.nothing+"/") {
		return nil
	}
	p, err := pathsafe.Parse(path)
	if err != nil {
		return err
	}
	names := p.Components()
	for n, name := range names {
		rel := strings.Join(names[:n+1], "/")
		if l.seen[rel] {
			continue
		}
		l.seen[rel] = true
		var st pathsafe.Stat
		err := l.enter(p, n)
		if err == nil {
			st, err = l.parent.Lstat(name)
		}
		absent := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, pathsafe.ErrCrossesMount) || errors.Is(err, pathsafe.ErrEscape)
		if err != nil && !absent {
			return err
		}
		l.note(rel, st, err)
		if err == nil {
			l.places.pass(l.at, rel, st, n < len(names)-1)
		}
		if absent {
			l.nothing = rel
			return nil
		}
	}
	return nil
}

// enter opens the directory of the first n components of a path, and notes it too, since a link may lead
// there.
func (l *lookup) enter(p pathsafe.Path, n int) (err error) {
	at := strings.Join(p.Components()[:n], "/")
	if l.parent != nil && l.at == at {
		return nil
	}
	l.leave()
	if l.parent, err = l.root.OpenParent(p, n); err != nil {
		return err
	}
	l.at = at
	if l.seen[at+"/"] {
		return nil
	}
	l.seen[at+"/"] = true
	st, err := l.parent.Stat()
	if err == nil {
		l.note(at+"/", st, nil)
		err = l.places.enter(at, l.parent, st)
	}
	return err
}

func (l *lookup) leave() {
	if l.parent != nil {
		l.parent.Close()
		l.parent = nil
	}
}

// note writes one entry into both digests; %q keeps entries apart, and writes to a hash do not fail.
// The size of a directory depends on the file system, and its times change with other work in it.
func (l *lookup) note(rel string, st pathsafe.Stat, err error) {
	if err != nil { // nothing is there, or nothing can be reached there
		_, _ = fmt.Fprintf(l.state, "%q absent\n", rel)
		return
	}
	seen := sight{Mode: st.Mode, UID: st.UID, GID: st.GID, ID: fmt.Sprintf("%d:%d", st.ID.Dev, st.ID.Ino)}
	if st.Mode.IsDir() {
		_, _ = fmt.Fprintf(l.state, "%q %v\n", rel, st.Mode)
		_, _ = fmt.Fprintf(l.witness, "%q %v %d:%d %d %d\n", rel, st.Mode, st.UID, st.GID, st.ID.Dev, st.ID.Ino)
	} else {
		seen.Size, seen.Modified, seen.Changed = st.Size, timeText(st.ModTime), timeText(st.ChangeTime)
		_, _ = fmt.Fprintf(l.state, "%q %v %d\n", rel, st.Mode, st.Size)
		_, _ = fmt.Fprintf(l.witness, "%q %v %d %d:%d %d %d %d %d\n", rel, st.Mode, st.Size,
			st.UID, st.GID, st.ID.Dev, st.ID.Ino, st.ModTime.UnixNano(), st.ChangeTime.UnixNano())
	}
	if rel != "/" { // it is the root, which was noted as ""
		l.names[cmp.Or(rel, rootPlace)] = seen
	}
}
