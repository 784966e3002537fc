package snapshot

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// version is of the form of a manifest.
const version = 1

// The bounds of what a caller may have a snapshot keep, in bytes.
const (
	maxText = 4 << 10
	maxSaid = 16
)

func (h *Header) check() error {
	texts := []string{h.Action, h.Reason}
	for _, name := range slices.Sorted(maps.Keys(h.Said)) {
		texts = append(texts, name, h.Said[name])
	}
	for _, text := range texts {
		if len(text) > maxText || !utf8.ValidString(text) {
			return fmt.Errorf("text %.100q: longer than %d bytes, or not UTF-8", text, maxText)
		}
	}
	switch {
	case len(h.Said) > maxSaid:
		return fmt.Errorf("%d texts, more than %d", len(h.Said), maxSaid)
	case !slices.Contains(kinds, h.Kind):
		return fmt.Errorf("kind %.100q: there is no such kind", h.Kind)
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
	o.number("names", int64(h.Names))
	o.text("reason", h.Reason)
	o.text("root", h.Root)
	var said [][2]string
	for _, name := range slices.Sorted(maps.Keys(h.Said)) {
		said = append(said, [2]string{name, h.Said[name]})
	}
	o.pairs("said", said)
	o.number("snapshot", version)
	if !h.Synced.IsZero() {
		o.instant("synced", h.Synced)
	}
	o.instant("time", h.Time)
	if h.Whole {
		o.yes("whole")
	}
	o.end()
}

func parseHeader(line string) (Header, error) {
	r := &lineReader{s: line}
	var h Header
	r.wants("action", func() { h.Action = r.text() })
	r.wants("bytes", func() { h.Bytes = r.number() })
	r.wants("files", func() { h.Files = r.number() })
	r.wants("kind", func() { h.Kind = Kind(r.text()) })
	r.wants("names", func() { h.Names = int(r.number()) })
	r.wants("reason", func() { h.Reason = r.text() })
	r.wants("root", func() { h.Root = r.text() })
	r.wants("said", func() { h.Said = saidOf(r.pairs()) })
	r.wants("snapshot", func() { r.bad = r.number() != version || r.bad })
	if r.key("synced") {
		h.Synced = r.instant().UTC()
	}
	r.wants("time", func() { h.Time = r.instant().UTC() })
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
	if h.Bytes < 0 || h.Files < 0 || h.Names < 0 || h.Whole != (h.Names == 0) {
		return Header{}, errors.New("its totals make no sense")
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

func (r *lineReader) wants(name string, read func()) {
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
	o.number("gid", int64(e.GID))
	if e.Hard != "" {
		o.text("hard", e.Hard)
	}
	o.key("ino")
	o.b = strconv.AppendUint(o.b, e.Ino, 10)
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
		r.wants("dev", func() { e.Dev = r.unsigned() })
		r.wants("gid", func() { e.GID = uint32(r.number()) })
		if r.key("hard") {
			e.Hard = r.text()
		}
		r.wants("ino", func() { e.Ino = r.unsigned() })
		r.wants("mode", func() { e.Mode = uint32(r.number()) })
		r.wants("mtime", func() { e.ModTime = r.instant() })
	}
	r.wants("path", func() { e.Path = r.text() })
	if r.key("sha256") {
		e.Digest = r.digest()
		r.wants("size", func() { e.Size = r.number() })
		e.Sparse = r.key("sparse") && r.has("true")
	}
	if r.key("target") {
		e.Target = r.text()
	}
	r.wants("type", func() { e.Type = typeNamed(r.plain()) })
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
	for _, t := range []Type{File, Dir, Link, Fifo, Absent, Special, Mount} {
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
		return errors.New("its mode or size makes no sense")
	case e.Path == "" && e.Type != Dir:
		return errors.New("the root is not a directory")
	case e.Hard != "" && e.Type == Dir:
		return errors.New("a directory has one name")
	case e.Target == "" && e.Type == Link, len(e.Target) > pathsafe.MaxPath:
		return errors.New("its target makes no sense")
	}
	return checkPath(e.Path)
}

// nameLayout makes names that sort by time.
const nameLayout = "20060102T150405.000000000Z"

// fileName is the name of a manifest's file.
func (h *Header) fileName() string { return stamp(h.Time) + "-" + h.ID }

func stamp(t time.Time) string { return t.UTC().Format(nameLayout) }
