// Package patch writes what differs between two versions of a file as git does, so that
// "git apply" and "patch -p1" accept it.
package patch

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spectrumfs/spectrum/internal/visible"
)

// Version is one version of a file. A nil Version is that there is none.
type Version struct {
	Mode    fs.FileMode // of which the bit to execute it counts
	Content []byte      // which [IsText]
}

// OfMode is a version without a content that counts, where only the mode differs.
func OfMode(executable bool) *Version {
	if executable {
		return &Version{Mode: 0o755}
	}
	return &Version{Mode: 0o644}
}

// mode is how git writes it.
func (v *Version) mode() string {
	if v.Mode&0o100 != 0 {
		return "100755"
	}
	return "100644"
}

// What git calls an empty file, and none: GNU patch believes only that of a file without lines.
const (
	emptyBlob = "e69de29"
	noBlob    = "0000000"
)

// Text returns the patch that makes one version of a file of the other, of which one may be nil. It
// is empty where they are the same.
func Text(path string, old, young *Version) []byte {
	var out bytes.Buffer
	before, after := Name("a/"+path), Name("b/"+path)
	head := fmt.Sprintf("diff --git %s %s\n", before, after)
	var content, becomes []byte
	if young != nil {
		becomes = young.Content
	}
	switch {
	case old == nil:
		head += "new file mode " + young.mode() + "\n"
		before = "/dev/null"
		if len(becomes) == 0 {
			head += "index " + noBlob + ".." + emptyBlob + "\n"
		}
	case young == nil:
		content = old.Content
		head += "deleted file mode " + old.mode() + "\n"
		after = "/dev/null"
		if len(content) == 0 {
			head += "index " + emptyBlob + ".." + noBlob + "\n"
		}
	default:
		content = old.Content
		if old.mode() != young.mode() {
			head += "old mode " + old.mode() + "\nnew mode " + young.mode() + "\n"
		} else if bytes.Equal(content, becomes) {
			return nil
		}
	}
	out.WriteString(head)
	if hunks := hunks(content, becomes); len(hunks) > 0 {
		fmt.Fprintf(&out, "--- %s\n+++ %s\n", before, after)
		out.Write(hunks)
	}
	return out.Bytes()
}

// hunks returns the lines that differ, with some of those around them.
func hunks(old, young []byte) []byte {
	const header = 3
	text := diff.Diff("a", old, "b", young)
	for range header {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text
}

// Count returns how many lines a patch of one file adds and removes.
func Count(text []byte) (added, removed int) {
	inHunks := false
	for line := range bytes.Lines(text) {
		switch {
		case line[0] == '@':
			inHunks = true
		case inHunks && line[0] == '+':
			added++
		case inHunks && line[0] == '-':
			removed++
		}
	}
	return added, removed
}

// IsText reports whether the lines of a content can be shown: a content with control characters of
// a terminal is not text.
func IsText(content []byte) bool {
	lines := bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	return utf8.Valid(lines) && !bytes.ContainsFunc(lines, func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' && r != '\n'
	})
}

// IsGits reports whether git takes a component of a path for its own directory, on any file system,
// and so applies no patch to it.
func IsGits(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		seen := strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) { // HFS+ drops some of these
				return -1
			}
			return r
		}, name)
		if at := strings.IndexAny(seen, `\:`); at >= 0 {
			seen = seen[:at]
		}
		seen = strings.ToLower(strings.TrimRight(seen, ". "))
		if seen == ".git" || seen == "git~1" {
			return true
		}
	}
	return false
}

// Name returns a name as written in a patch: in quotes if it has an ambiguous or invisible
// character.
func Name(name string) string {
	plain := func(c byte) bool { return c > ' ' && c != 0x7f && c != '"' && c != '\\' }
	quoted := visible.Escape(name) != name
	for i := range len(name) {
		quoted = quoted || !plain(name[i])
	}
	if !quoted {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c == ' ' || plain(c) && c < utf8.RuneSelf:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\%03o`, c)
		}
	}
	return b.String() + `"`
}
