package snapshot

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// version is of the form of a manifest. Version 1 was neither signed nor chained; it is
// [ErrOldVersion]. Version 2 had no parts, and is read.
const (
	version      = 3
	withParts    = 3
	oldestToRead = 2
)

// The bounds of what a caller may have a snapshot keep, in bytes.
const (
	maxText  = 4 << 10
	maxTexts = 16
	// Some of them are lists of the IDs of commits.
	maxTextsTotal = 512 << 10
)

func (h *Header) check() error {
	short, long := []string{h.Action, h.Log, h.Reason}, 0
	for _, name := range slices.Sorted(maps.Keys(h.Texts)) {
		text := h.Texts[name]
		short, long = append(short, name), long+len(text)
		if !utf8.ValidString(text) {
			return fmt.Errorf("text %.100q: not UTF-8", text)
		}
	}
	for _, text := range short {
		if len(text) > maxText || !utf8.ValidString(text) {
			return fmt.Errorf("text %.100q: longer than %d bytes, or not UTF-8", text, maxText)
		}
	}
	if long > maxTextsTotal {
		return fmt.Errorf("its texts have %d bytes, more than %d", long, maxTextsTotal)
	}
	switch {
	case len(h.Texts) > maxTexts:
		return fmt.Errorf("%d texts, more than %d", len(h.Texts), maxTexts)
	case !slices.Contains(kinds, h.Kind):
		return fmt.Errorf("unknown kind %.100q", h.Kind)
	case !filepath.IsAbs(h.Root) || filepath.Clean(h.Root) != h.Root || len(h.Root) > pathsafe.MaxPath:
		return fmt.Errorf("root %.100q: not an absolute path in its shortest form", h.Root)
	}
	return nil
}

func (o *object) header(h *Header) {
	o.text("action", h.Action)
	o.number("bytes", h.Bytes)
	o.number("files", h.Files)
	o.text("kind", string(h.Kind))
	o.text("log", h.Log)
	o.number("names", int64(h.Names))
	o.text("previous", h.Previous)
	o.text("reason", h.Reason)
	o.text("root", h.Root)
	var said [][2]string
	for _, name := range slices.Sorted(maps.Keys(h.Texts)) {
		said = append(said, [2]string{name, h.Texts[name]})
	}
	o.pairs("said", said)
	o.number("sequence", h.Sequence)
	o.number("snapshot", int64(h.Version))
	if !h.Synced.IsZero() {
		o.instant("synced", h.Synced)
	}
	o.instant("time", h.Time)
	if h.Unread > 0 {
		o.number("unread", int64(h.Unread))
	}
	if h.Whole {
		o.yes("whole")
	}
	o.end()
}

func parseHeader(line string) (Header, error) {
	r := &lineReader{s: line}
	var h Header
	r.requires("action", func() { h.Action = r.text() })
	r.requires("bytes", func() { h.Bytes = r.number() })
	r.requires("files", func() { h.Files = r.number() })
	r.requires("kind", func() { h.Kind = Kind(r.text()) })
	r.requires("log", func() { h.Log = r.text() })
	r.requires("names", func() { h.Names = int(r.number()) })
	r.requires("previous", func() { h.Previous = r.text() })
	r.requires("reason", func() { h.Reason = r.text() })
	r.requires("root", func() { h.Root = r.text() })
	r.requires("said", func() { h.Texts = saidOf(r.pairs()) })
	r.requires("sequence", func() { h.Sequence = r.number() })
	r.requires("snapshot", func() { h.Version = int(r.number()) })
	r.bad = r.bad || h.Version < oldestToRead || h.Version > version
	if r.key("synced") {
		h.Synced = r.instant().UTC()
	}
	r.requires("time", func() { h.Time = r.instant().UTC() })
	if r.key("unread") {
		h.Unread = int(r.number())
	}
	h.Whole = r.key("whole") && r.has("true")
	var again object
	if !r.bad {
		again.header(&h)
	}
	if r.bad || string(again.b) != line {
		return Header{}, errLine
	}
	if err := h.check(); err != nil {
		return Header{}, err
	}
	if h.Bytes < 0 || h.Files < 0 || h.Names < 0 || h.Unread < 0 || h.Whole != (h.Names == 0) {
		return Header{}, errors.New("its totals are invalid")
	}
	if h.Sequence < 1 || h.Previous != "" && !isID(h.Previous) || (h.Previous == "") != (h.Sequence == 1) {
		return Header{}, errors.New("its position in the chain is invalid")
	}
	return h, nil
}

func saidOf(pairs [][2]string) map[string]string {
	if len(pairs) == 0 {
		return nil
	}
	said := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		said[pair[0]] = pair[1]
	}
	return said
}

func (r *lineReader) requires(name string, read func()) {
	if !r.key(name) {
		r.bad = true
		return
	}
	read()
}

func (o *object) entry(e *Entry) {
	if e.Asked {
		o.yes("asked")
	}
	if e.Type == Absent {
		o.text("path", e.Path)
		o.text("type", string(e.Type))
		o.end()
		return
	}
	if !e.BirthTime.IsZero() {
		o.instant("birth", e.BirthTime)
	}
	o.instant("ctime", e.ChangeTime)
	o.key("dev")
	o.b = strconv.AppendUint(o.b, e.Dev, 10)
	if e.Type == Broken {
		o.text("error", e.Err)
	}
	o.number("gid", int64(e.GID))
	if e.Hard != "" {
		o.text("hard", e.Hard)
	}
	o.key("ino")
	o.b = strconv.AppendUint(o.b, e.Ino, 10)
	if e.Links > 0 {
		o.number("links", int64(e.Links))
	}
	o.number("mode", int64(e.Mode))
	o.instant("mtime", e.ModTime)
	o.text("path", e.Path)
	o.content(e)
	o.text("type", string(e.Type))
	o.number("uid", int64(e.UID))
	if len(e.xattrs) > 0 {
		var all [][2]string
		for _, x := range e.xattrs {
			all = append(all, [2]string{x.Name, hex.EncodeToString([]byte(x.Value))})
		}
		o.pairs("xattrs", all)
	}
	o.end()
}

func (o *object) content(e *Entry) {
	switch e.Type {
	case File:
		o.hex("sha256", e.Digest[:])
		o.number("size", e.Size)
		if e.Sparse {
			o.yes("sparse")
		}
	case Link:
		o.text("target", e.Target)
	}
}

// parseEntry reads the line of an entry. buf is room to print it again.
func parseEntry(line string, buf []byte) (e Entry, _ []byte, err error) {
	r := &lineReader{s: line}
	r.entry(&e)
	if r.bad {
		return Entry{}, buf, errLine
	}
	again := object{buf[:0]}
	again.entry(&e)
	if string(again.b) != line {
		return Entry{}, again.b, errLine
	}
	if err := e.check(); err != nil {
		return Entry{}, again.b, fmt.Errorf("entry %.200q: %w", e.Path, err)
	}
	return e, again.b, nil
}

func (r *lineReader) entry(e *Entry) {
	e.Asked = r.key("asked") && r.has("true")
	if r.key("birth") {
		e.BirthTime = r.instant()
	}
	if r.key("ctime") {
		e.ChangeTime = r.instant()
		r.requires("dev", func() { e.Dev = r.unsigned() })
		if r.key("error") {
			e.Err = r.text()
		}
		r.requires("gid", func() { e.GID = uint32(r.number()) })
		if r.key("hard") {
			e.Hard = r.text()
		}
		r.requires("ino", func() { e.Ino = r.unsigned() })
		if r.key("links") {
			e.Links = uint32(r.number())
		}
		r.requires("mode", func() { e.Mode = uint32(r.number()) })
		r.requires("mtime", func() { e.ModTime = r.instant() })
	}
	r.requires("path", func() { e.Path = r.text() })
	if r.key("sha256") {
		e.Digest = r.digest()
		r.requires("size", func() { e.Size = r.number() })
		e.Sparse = r.key("sparse") && r.has("true")
	}
	if r.key("target") {
		e.Target = r.text()
	}
	r.requires("type", func() { e.Type = typeNamed(r.plain()) })
	if r.key("uid") {
		e.UID = uint32(r.number())
	}
	if r.key("xattrs") {
		r.xattrs(e)
	}
}

func (r *lineReader) xattrs(e *Entry) {
	for _, pair := range r.pairs() {
		value, err := hex.DecodeString(pair[1])
		r.bad = r.bad || err != nil
		e.xattrs = append(e.xattrs, pathsafe.Xattr{Name: pair[0], Value: string(value)})
	}
}

// typeNamed avoids a string for each entry.
func typeNamed(name string) Type {
	for _, t := range types {
		if name == string(t) {
			return t
		}
	}
	return ""
}

func (e *Entry) check() error {
	switch {
	case e.Type == "":
		return errors.New("no such type")
	case e.Mode > 0o7777 || e.Size < 0:
		return errors.New("its mode or size is invalid")
	case e.Path == "" && e.Type != Dir:
		return errors.New("the root is not a directory")
	case (e.Err != "") != (e.Type == Broken):
		return errors.New("its error is invalid")
	case (e.Hard != "" || e.Links != 0) && e.Type == Dir, e.Links == 1:
		return errors.New("a directory cannot have several names")
	case e.Target == "" && e.Type == Link, len(e.Target) > pathsafe.MaxPath:
		return errors.New("its target is invalid")
	}
	return checkPath(e.Path)
}

// fileName is the name of a manifest's file.
func (h *Header) fileName() string { return fmt.Sprintf("%012d-%s", h.Sequence, h.ID) }

// parseName returns the place in the chain and the ID that the name of a manifest's file
// has.
func parseName(name string) (sequence int64, id string, err error) {
	number, id, _ := strings.Cut(name, "-")
	sequence, err = strconv.ParseInt(number, 10, 64)
	h := Header{Sequence: sequence, ID: id}
	switch {
	case err == nil && sequence > 0 && isID(id) && h.fileName() == name:
		return sequence, id, nil
	case oldName.MatchString(name):
		return 0, "", ErrOldVersion
	}
	return 0, "", errors.New("not the name of a snapshot")
}

// oldName is the name of a manifest of version 1.
var oldName = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}\.[0-9]{9}Z-[0-9a-f]{64}$`)
