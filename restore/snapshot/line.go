package snapshot

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// A line of a manifest is one canonical JSON object. It is read by a reader
// that knows which members come in which order and may be generous otherwise:
// what was read is printed again, and must be the same bytes.

var errLine = errors.New("not a line of a manifest")

// quote makes UTF-8 of any bytes: what is not UTF-8, and "%", becomes "%" and
// two hex digits.
func quote(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, '%') < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 || r == '%' {
			const digits = "0123456789ABCDEF"
			b.WriteByte('%')
			b.WriteByte(digits[s[0]>>4])
			b.WriteByte(digits[s[0]&15])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// unquote is the reverse of quote.
func unquote(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 {
		return s, true
	}
	var b strings.Builder
	for {
		plain, rest, found := strings.Cut(s, "%")
		b.WriteString(plain)
		if !found {
			return b.String(), true
		}
		if len(rest) < 2 {
			return "", false
		}
		c, err := strconv.ParseUint(rest[:2], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(c))
		s = rest[2:]
	}
}

// An object is a line that is being written.
type object struct{ b []byte }

func (o *object) key(name string) {
	sep := byte(',')
	if n := len(o.b); n == 0 || o.b[n-1] == '\n' {
		sep = '{'
	}
	o.b = append(o.b, sep, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

func (o *object) text(name, s string) {
	o.key(name)
	o.b = canonjson.AppendText(o.b, quote(s))
}

func (o *object) number(name string, n int64) {
	o.key(name)
	o.b = strconv.AppendInt(o.b, n, 10)
}

func (o *object) yes(name string) {
	o.key(name)
	o.b = append(o.b, "true"...)
}

func (o *object) hex(name string, data []byte) {
	o.key(name)
	o.b = append(hex.AppendEncode(append(o.b, '"'), data), '"')
}

// instant writes seconds since 1970, which may be negative, and nine digits of
// the nanoseconds that are to be added.
func (o *object) instant(name string, t time.Time) {
	o.key(name)
	o.b = strconv.AppendInt(append(o.b, '"'), t.Unix(), 10)
	nanos := strconv.AppendInt(make([]byte, 0, 10), int64(t.Nanosecond())+1e9, 10)
	o.b = append(o.b, '.')
	o.b = append(append(o.b, nanos[1:]...), '"')
}

// pairs writes an object of texts, whose names are sorted.
func (o *object) pairs(name string, all [][2]string) {
	o.key(name)
	o.b = append(o.b, '{')
	for i, pair := range all {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = append(canonjson.AppendText(o.b, quote(pair[0])), ':')
		o.b = canonjson.AppendText(o.b, quote(pair[1]))
	}
	o.b = append(o.b, '}')
}

// end ends the line.
func (o *object) end() { o.b = append(o.b, '}', '\n') }

// A lineReader reads a line. Once bad it stays so.
type lineReader struct {
	s   string
	bad bool
}

// has takes lit when it comes next.
func (r *lineReader) has(lit string) bool {
	if r.bad || !strings.HasPrefix(r.s, lit) {
		return false
	}
	r.s = r.s[len(lit):]
	return true
}

func (r *lineReader) need(lit string) {
	if !r.has(lit) {
		r.bad = true
	}
}

// key takes the name of a member when it comes next.
func (r *lineReader) key(name string) bool {
	n := len(name)
	if r.bad || len(r.s) < n+4 || r.s[0] != ',' && r.s[0] != '{' || r.s[2:2+n] != name || r.s[1] != '"' || r.s[2+n] != '"' || r.s[3+n] != ':' {
		return false
	}
	r.s = r.s[n+4:]
	return true
}

func (r *lineReader) number() int64 {
	end := 0
	for end < len(r.s) && (r.s[end] == '-' || '0' <= r.s[end] && r.s[end] <= '9') {
		end++
	}
	n, err := strconv.ParseInt(r.s[:end], 10, 64)
	r.bad = r.bad || err != nil
	r.s = r.s[end:]
	return n
}

func (r *lineReader) unsigned() uint64 {
	end := 0
	for end < len(r.s) && '0' <= r.s[end] && r.s[end] <= '9' {
		end++
	}
	n, err := strconv.ParseUint(r.s[:end], 10, 64)
	r.bad = r.bad || err != nil
	r.s = r.s[end:]
	return n
}

// raw takes a string with its quotes.
func (r *lineReader) raw() string {
	if r.bad || r.s == "" || r.s[0] != '"' {
		r.bad = true
		return ""
	}
	for i := 1; i < len(r.s); i++ {
		switch r.s[i] {
		case '\\':
			i++
		case '"':
			raw := r.s[:i+1]
			r.s = r.s[i+1:]
			return raw
		}
	}
	r.bad = true
	return ""
}

// plain takes a string that needs no escapes.
func (r *lineReader) plain() string {
	raw := r.raw()
	if len(raw) < 2 {
		return ""
	}
	return raw[1 : len(raw)-1]
}

func (r *lineReader) text() string {
	raw := r.raw()
	if r.bad {
		return ""
	}
	s := raw[1 : len(raw)-1]
	if strings.IndexByte(s, '\\') >= 0 {
		v, err := canonjson.Parse([]byte(`{"":` + raw + `}`))
		if err != nil {
			r.bad = true
			return ""
		}
		o, _ := v.Object()
		member, _ := o.Get("")
		s, _ = member.Text()
	}
	s, ok := unquote(s)
	r.bad = r.bad || !ok
	return strings.Clone(s)
}

func (r *lineReader) digest() (d Digest) {
	s := r.plain()
	if len(s) != 2*len(d) {
		r.bad = true
		return d
	}
	_, err := hex.Decode(d[:], []byte(s))
	r.bad = r.bad || err != nil
	return d
}

// bytes takes n bytes in hex.
func (r *lineReader) bytes(n int) []byte {
	data, err := hex.DecodeString(r.plain())
	r.bad = r.bad || err != nil || len(data) != n
	return data
}

func (r *lineReader) instant() time.Time {
	sec, nanos, ok := strings.Cut(r.plain(), ".")
	s, err1 := strconv.ParseInt(sec, 10, 64)
	n, err2 := strconv.ParseInt(nanos, 10, 64)
	if !ok || err1 != nil || err2 != nil || n < 0 || n >= 1e9 {
		r.bad = true
	}
	return time.Unix(s, n)
}

// pairs takes an object of texts; other than sorted names are bad.
func (r *lineReader) pairs() (all [][2]string) {
	r.need("{")
	for !r.bad && !r.has("}") {
		if len(all) > 0 {
			r.need(",")
		}
		name := r.text()
		r.need(":")
		all = append(all, [2]string{name, r.text()})
		if n := len(all); n > 1 && all[n-2][0] >= name {
			r.bad = true
		}
	}
	return all
}
