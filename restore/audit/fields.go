package audit

import (
	"strconv"
	"time"

	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// fields reads the members of an object; bad names one that is not as it must
// be.
type fields struct {
	object canonjson.Object
	bad    string
}

func (f *fields) get(name string) canonjson.Value {
	value, ok := f.object.Get(name)
	if !ok {
		f.bad = name
	}
	return value
}

func (f *fields) text(name string) string {
	text, ok := f.get(name).Text()
	if !ok || text == "" {
		f.bad = name
	}
	return text
}

func (f *fields) optional(name string) string {
	value := f.get(name)
	if string(value.Append(nil)) == "null" {
		return ""
	}
	return f.text(name)
}

// extra reads a member that is text, or is not there.
func (f *fields) extra(name string) string {
	if _, ok := f.object.Get(name); !ok {
		return ""
	}
	return f.text(name)
}

// list reads a member that is a list of texts, or is not there. Anything else
// would print as other bytes.
func (f *fields) list(name string) []string {
	value, _ := f.object.Get(name)
	var list []string
	for element := range value.Elements() {
		text, _ := element.Text()
		list = append(list, text)
	}
	return list
}

func (f *fields) number(name string) int64 {
	n, err := strconv.ParseInt(string(f.get(name).Append(nil)), 10, 64)
	if err != nil || n < 0 {
		f.bad = name
	}
	return n
}

func (f *fields) time(name string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, f.text(name))
	if err != nil || t.Location() != time.UTC {
		f.bad = name
	}
	return t
}

func (f *fields) texts(name string) map[string]string {
	object, ok := f.get(name).Object()
	if !ok {
		f.bad = name
	}
	texts := map[string]string{}
	for key, value := range object.Members() {
		if texts[key], ok = value.Text(); !ok {
			f.bad = name
		}
	}
	return texts
}

func (f *fields) torn(name string) *Torn {
	value := f.get(name)
	if string(value.Append(nil)) == "null" {
		return nil
	}
	object, _ := value.Object()
	inner := fields{object: object}
	torn := &Torn{inner.number("bytes"), inner.text("sha256")}
	if inner.bad != "" {
		f.bad = name
	}
	return torn
}
