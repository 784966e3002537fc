package gitbase

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// ErrTree is a commit that git itself would not check out.
var ErrTree = errors.New("the commit is malformed")

// maxFiles is how many files a commit may have.
var maxFiles = 2 << 20

// The modes of a tree.
const (
	modeFile      = "100644"
	modeExec      = "100755"
	modeGroup     = "100664" // of old commits; it is that of a file
	modeLink      = "120000"
	modeSubmodule = "160000"
)

// entry is a file of a commit.
type entry struct {
	mode, object string
	name         string // from the top of the repository
	path         pathsafe.Path
	filter       string // the name of one that is a program
	converted    bool   // git may convert it at a checkout
	bytes        int64
	digest       [sha256.Size]byte
}

func (e *entry) isFile() bool { return e.mode == modeFile || e.mode == modeExec || e.mode == modeGroup }

// listTree lists a commit, in the order of the names. None is above another one.
func (p *private) listTree(ctx context.Context, commit string) ([]*entry, error) {
	var all []*entry
	read, files := 0, map[string]bool{}
	err := p.git.run(ctx, nil, func(r *bufio.Reader) error {
		for {
			record, err := r.ReadSlice(0)
			if errors.Is(err, io.EOF) && len(record) == 0 {
				return nil
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				return fmt.Errorf("%w: a name of more than %d bytes", ErrTree, r.Size())
			}
			if err != nil {
				return err
			}
			e, err := parseEntry(string(record[:len(record)-1]))
			if err != nil {
				return err
			}
			if read += len(record); read > maxList || len(all) == maxFiles {
				return fmt.Errorf("the commit has more than %d files: %w", len(all), errTooMuch)
			}
			if files[e.name] {
				return fmt.Errorf("%w: duplicate %q", ErrTree, e.name)
			}
			files[e.name] = true
			all = append(all, e)
		}
	}, "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		for up := path.Dir(e.name); up != "."; up = path.Dir(up) {
			if files[up] {
				return nil, fmt.Errorf("%w: %q is a file and a directory", ErrTree, up)
			}
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// parseEntry reads a line such as "100644 blob e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\tname".
func parseEntry(record string) (*entry, error) {
	about, name, ok := strings.Cut(record, "\t")
	words := strings.Split(about, " ")
	if !ok || len(words) != 3 || !isHash.MatchString(words[2]) {
		return nil, fmt.Errorf("%w: %q", ErrTree, record)
	}
	e := &entry{mode: words[0], object: words[2], name: name}
	if kind := map[bool]string{true: "commit", false: "blob"}[e.mode == modeSubmodule]; words[1] != kind || !e.isFile() && e.mode != modeLink && e.mode != modeSubmodule {
		return nil, fmt.Errorf("%w: %q has the mode %q of a %s", ErrTree, name, e.mode, words[1])
	}
	if _, err := pathsafe.Found(name); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTree, err)
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.EqualFold(part, ".git") {
			return nil, fmt.Errorf("%w: %q has the name of a git directory in it", ErrTree, name)
		}
	}
	return e, nil
}

// writeAttributes makes the .gitattributes of the commit the only files of the private work tree.
func (p *private) writeAttributes(ctx context.Context, all []*entry) error {
	tree, err := os.OpenRoot(p.git.dir)
	if err != nil {
		return err
	}
	defer tree.Close()
	var list []*entry
	for _, e := range all {
		if e.isFile() && path.Base(e.name) == ".gitattributes" {
			list = append(list, e)
		}
	}
	var left int64 = 64 << 20
	return p.contents(ctx, list, false, func(e *entry, copyTo func(io.Writer) error) error {
		if err := tree.MkdirAll(path.Dir(e.name), 0o700); err != nil {
			return err
		}
		file, err := tree.OpenFile(e.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if err := errors.Join(copyTo(&limited{file, &left}), file.Close()); err != nil {
			return fmt.Errorf("%q: %w", e.name, err)
		}
		return nil
	})
}

// limited writes until nothing is left.
type limited struct {
	to   io.Writer
	left *int64
}

func (l *limited) Write(b []byte) (int, error) {
	if *l.left -= int64(len(b)); *l.left < 0 {
		return 0, errTooMuch
	}
	return l.to.Write(b)
}

// attributes by which git converts a file at a checkout.
var attributes = []string{"text", "crlf", "eol", "ident", "working-tree-encoding", "filter"}

// findConverted asks git which files it may convert.
func (p *private) findConverted(ctx context.Context, list []*entry, r *repository) error {
	if len(list) == 0 {
		return nil
	}
	var names bytes.Buffer
	for _, e := range list {
		names.WriteString(e.name + "\x00")
	}
	out, err := p.git.output(ctx, names.Bytes(), append([]string{"check-attr", "-z", "--stdin"}, attributes...)...)
	if err != nil {
		return err
	}
	answers, err := fields(out)
	if err != nil || len(answers) != 3*len(attributes)*len(list) {
		return fmt.Errorf("git check-attr: %d answers about %d files: %w", len(answers), len(list), io.ErrUnexpectedEOF)
	}
	for i, e := range list {
		e.converted = r.convertsAll
		for n := range attributes {
			answer := answers[3*(i*len(attributes)+n):]
			value := answer[2]
			switch {
			case value == "unspecified" || value == "unset":
			case answer[1] != "filter":
				e.converted = true
			case r.filters[value]:
				e.filter = value
			}
		}
	}
	return nil
}

// hashAll hashes files as they are in a checkout.
func (p *private) hashAll(ctx context.Context, list []*entry, hashed func(int64)) error {
	for _, converted := range []bool{false, true} {
		some := slices.DeleteFunc(slices.Clone(list), func(e *entry) bool { return e.converted != converted })
		err := p.contents(ctx, some, converted, func(e *entry, copyTo func(io.Writer) error) error {
			sum := &summing{Hash: sha256.New(), told: hashed}
			err := copyTo(sum)
			e.bytes = sum.n
			sum.Sum(e.digest[:0])
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// summing is a hash that counts.
type summing struct {
	hash.Hash
	n    int64
	told func(int64)
}

func (s *summing) Write(b []byte) (int, error) {
	s.n += int64(len(b))
	if s.told != nil {
		s.told(int64(len(b)))
	}
	return s.Hash.Write(b)
}

// A MissingError is a file of the commit whose object the repository does not have.
type MissingError struct{ Path, Object string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("the repository does not have the content of %q, object %s", e.Path, e.Object)
}

// contents hands over the contents of files one after another, from one git. With converted they are as
// in a checkout. The size that git writes is that before the conversion; so each header begins with a
// random word, which no content can have, and a content ends where the next header begins.
func (p *private) contents(ctx context.Context, list []*entry, converted bool, do func(e *entry, copyTo func(io.Writer) error) error) error {
	if len(list) == 0 {
		return nil
	}
	word := rand.Text()
	args := []string{"cat-file", "--batch=" + word + " %(objectname) %(objecttype)", "--buffer"}
	end := "\n"
	if converted {
		args = append(args, "--filters")
		if slices.ContainsFunc(list, func(e *entry) bool { return strings.Contains(e.name, "\n") }) {
			args, end = append(args, "-z"), "\x00" // git 2.38 is the first that has it
		}
	}
	var requests bytes.Buffer
	for _, e := range list {
		requests.WriteString(e.object)
		if converted {
			requests.WriteString(" " + e.name)
		}
		requests.WriteString(end)
	}
	return p.git.run(ctx, requests.Bytes(), func(r *bufio.Reader) error {
		for _, e := range list {
			// That an object is missing has no header, so it is taken for the end of the content before.
			header, err := r.ReadString('\n')
			about, ok := strings.CutPrefix(header, word+" "+e.object+" ")
			switch {
			case err != nil:
				return fmt.Errorf("%w: %w", &MissingError{e.name, e.object}, err)
			case !ok:
				return &MissingError{e.name, e.object}
			case about != "blob\n":
				return fmt.Errorf("%w: %q is a %s", ErrTree, e.name, strings.TrimSpace(about))
			}
			if err := do(e, func(w io.Writer) error { return copyUntil(w, r, "\n"+word+" ") }); err != nil {
				return err
			}
		}
		return nil
	}, args...)
}

// copyUntil copies what is before a mark, or before the line feed at the end, which it passes over.
func copyUntil(w io.Writer, r *bufio.Reader, mark string) error {
	for {
		ahead, err := r.Peek(r.Size())
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if at := bytes.Index(ahead, []byte(mark)); at >= 0 {
			_, err := w.Write(ahead[:at])
			_, skipErr := r.Discard(at + 1)
			return errors.Join(err, skipErr)
		}
		if err != nil {
			content, ok := bytes.CutSuffix(ahead, []byte("\n"))
			if !ok {
				return io.ErrUnexpectedEOF
			}
			_, err := w.Write(content)
			_, skipErr := r.Discard(len(ahead))
			return errors.Join(err, skipErr)
		}
		safe := len(ahead) - len(mark)
		if _, err := w.Write(ahead[:safe]); err != nil {
			return err
		}
		if _, err := r.Discard(safe); err != nil {
			return err
		}
	}
}

// linkTargets returns where the links of the commit lead, by their paths.
func (p *private) linkTargets(ctx context.Context, list []*entry) (map[string]string, error) {
	targets := map[string]string{}
	err := p.contents(ctx, list, false, func(e *entry, copyTo func(io.Writer) error) error {
		var left int64 = pathsafe.MaxPath
		var target bytes.Buffer
		if err := copyTo(&limited{&target, &left}); err != nil {
			return fmt.Errorf("%w: where the link %q leads: %w", ErrTree, e.name, err)
		}
		targets[e.path.String()] = target.String()
		return nil
	})
	return targets, err
}

// baseList makes the base of files that were hashed, and of links.
func (p *private) baseList(ctx context.Context, compared []*entry, r *repository) (*bundle.BaseList, error) {
	list := &bundle.BaseList{HasModes: !r.noModes}
	var links []*entry
	for _, e := range compared {
		switch {
		case e.mode == modeLink:
			links = append(links, e)
		case e.isFile():
			file := bundle.BaseFile{Known: bundle.Known{Path: e.path, Bytes: e.bytes, Digest: e.digest}, Executable: e.mode == modeExec}
			if e.filter != "" {
				file.Doubt = fmt.Sprintf("has the git filter %q, which is a program and is not run", e.filter)
			}
			list.Files = append(list.Files, file)
		}
	}
	var err error
	list.Links, err = p.linkTargets(ctx, links)
	return list, err
}
