package suite

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
)

// A Kind is what an entry is on the disk.
type Kind string

// The kinds. A link's content is where it leads.
const (
	File Kind = ""
	Dir  Kind = "dir"
	Link Kind = "link"
	FIFO Kind = "fifo"
)

// An Entry is one thing of a tree. What is above it is a directory, listed or
// not.
type Entry struct {
	Path    string // below the working directory
	Kind    Kind
	Content string
	Mode    fs.FileMode // 0: 0644 for a file, 0755 for a directory
	Pad     int         // a file is filled up to this size with spaces
	Size    int64       // a file is lengthened to this size with zeros
	After   bool        // it is there after an accepted restore: where nothing was, or in the place of another entry
	Gone    bool        // it is there before, and not after an accepted restore
	Any     bool        // of what is there afterwards: its content is free
}

func parseEntry(header string, data []byte) (Entry, error) {
	words := strings.Fields(header)
	if len(words) == 0 {
		return Entry{}, errors.New("no path")
	}
	path, err := unescape(words[0])
	e := Entry{Path: path}
	encoding := "text"
	for _, word := range words[1:] {
		err = errors.Join(err, e.setOption(word, &encoding))
	}
	if err != nil {
		return Entry{}, err
	}
	if e.Kind == Link {
		e.Content, err = unescape(strings.TrimSuffix(string(data), "\n"))
		return e, err
	}
	return e, e.setContent(encoding, data)
}

func (e *Entry) setOption(word string, encoding *string) error {
	name, value, _ := strings.Cut(word, "=")
	n, err := strconv.ParseInt(value, 0, 64)
	switch name {
	case "chomp", "hex":
		*encoding = name
		return nil
	case "dir", "link", "fifo":
		e.Kind = Kind(name)
		return nil
	case "after":
		e.After = true
		return nil
	case "gone":
		e.Gone = true
		return nil
	case "any":
		e.Any = true
		return nil
	case "mode":
		e.Mode = fs.FileMode(n)
	case "pad":
		e.Pad = int(n)
	case "size":
		e.Size = n
	default:
		return fmt.Errorf("unknown option %q", word)
	}
	return err
}

func (e *Entry) setContent(encoding string, data []byte) error {
	text := string(data)
	switch encoding {
	case "chomp":
		text = strings.TrimSuffix(text, "\n")
	case "hex":
		raw, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			return err
		}
		text = string(raw)
	}
	e.Content = text
	return nil
}

// file is the entry in an archive, in the most readable form that holds it.
func (e Entry) file() txtar.File {
	header := escape(e.Path)
	data := []byte(e.Content)
	switch {
	case e.Kind == Link:
		data = []byte(escape(e.Content) + "\n")
	case e.Kind != File:
		data = nil
	case !isText(data):
		header, data = header+" hex", hexLines(data)
	case len(data) > 0 && data[len(data)-1] != '\n':
		header, data = header+" chomp", append(data, '\n')
	}
	if e.Kind != File {
		header += " " + string(e.Kind)
	}
	for _, option := range []struct {
		name  string
		value int64
		base  string
	}{{"mode", int64(e.Mode), "%#o"}, {"pad", int64(e.Pad), "%d"}, {"size", e.Size, "%d"}} {
		if option.value != 0 {
			header += " " + option.name + "=" + fmt.Sprintf(option.base, option.value)
		}
	}
	for _, option := range []struct {
		name string
		is   bool
	}{{"after", e.After}, {"gone", e.Gone}, {"any", e.Any}} {
		if option.is {
			header += " " + option.name
		}
	}
	return txtar.File{Name: header, Data: data}
}

// isText reports whether bytes can stand in an archive as they are.
func isText(data []byte) bool {
	strange := func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }
	return utf8.Valid(data) && !txtar.NeedsQuote(data) && bytes.IndexFunc(data, strange) < 0
}

func hexLines(data []byte) []byte {
	var b []byte
	for len(data) > 0 {
		n := min(len(data), 40)
		b = append(hex.AppendEncode(b, data[:n]), '\n')
		data = data[n:]
	}
	return b
}

// escape writes a path, a link's target or an argument as one word: what is not a
// printable character of UTF-8, white space, and "%" itself are %XX.
func escape(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		broken := r == utf8.RuneError && n == 1
		if broken || r == '%' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			for i := range n {
				fmt.Fprintf(&b, "%%%02x", s[i])
			}
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func unescape(s string) (string, error) {
	var b strings.Builder
	for {
		plain, rest, found := strings.Cut(s, "%")
		b.WriteString(plain)
		if !found {
			return b.String(), nil
		}
		if len(rest) < 2 {
			return "", fmt.Errorf("%q ends in half a %%XX", s)
		}
		c, err := hex.DecodeString(rest[:2])
		if err != nil {
			return "", err
		}
		b.Write(c)
		s = rest[2:]
	}
}
