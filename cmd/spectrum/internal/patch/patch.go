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

// mode is how git writes it.
func (v *Version) mode() string {
	if v.Mode&0o100 != 0 {
		return "100755"
	}
	return "100644"
}

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
	case young == nil:
		content = old.Content
		head += "deleted file mode " + old.mode() + "\n"
		after = "/dev/null"
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

// IsText reports whether the lines of a content can be shown: what moves a cursor is no text.
func IsText(content []byte) bool {
	lines := bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	return utf8.Valid(lines) && !bytes.ContainsFunc(lines, func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' && r != '\n'
	})
}

// Name returns a name as it stands in a patch: in quotes, where it has a character that
// could be taken for something else or cannot be seen.
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
