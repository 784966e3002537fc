package canonjson_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// TestZeroValue: the zero value is empty, and all its methods can be called.
func TestZeroValue(t *testing.T) {
	var v canonjson.Value
	if _, ok := v.Object(); ok {
		t.Error("an object")
	}
	if text, ok := v.Text(); ok || text != "" {
		t.Error("a string")
	}
	if v.IsTrue() || v.IsArray() {
		t.Error("true or an array")
	}
	for range v.Elements() {
		t.Error("an element")
	}
	var b strings.Builder
	if n, err := v.WriteTo(&b); n != 0 || err != nil || b.Len() > 0 || len(v.Append(nil)) > 0 {
		t.Error("text")
	}
	if err := v.WriteASCII(&b); err != nil || b.Len() > 0 {
		t.Error("ASCII text")
	}
	var o canonjson.Object
	for range o.Members() {
		t.Error("a member")
	}
	if _, ok := o.Get(""); ok || o.Len() != 0 {
		t.Error("members")
	}
}

// TestSealed: only Parse can put text into a Value.
func TestSealed(t *testing.T) {
	value := reflect.TypeFor[canonjson.Value]()
	for i := range value.NumField() {
		if value.Field(i).IsExported() {
			t.Errorf("Value.%s can be set from outside", value.Field(i).Name)
		}
	}
	for i := range reflect.TypeFor[*canonjson.Value]().NumMethod() {
		if name := reflect.TypeFor[*canonjson.Value]().Method(i).Name; strings.HasPrefix(name, "Unmarshal") || strings.HasPrefix(name, "Set") {
			t.Errorf("Value has a method %s", name)
		}
	}
}

// TestImmutable: neither the input nor what was given out changes a Value.
func TestImmutable(t *testing.T) {
	data := []byte(`{"a":"text","b":[1,2]}`)
	value := mustParse(t, data)
	object, _ := value.Object()
	for i := range data {
		data[i] = 'x'
	}
	out := value.Append(nil)
	for i := range out {
		out[i] = 'y'
	}
	for _, member := range object.Members() {
		_ = append(member.Append(nil), "zzzz"...)
	}
	if got := string(value.Append(nil)); got != `{"a":"text","b":[1,2]}` {
		t.Errorf("now it is %s", got)
	}
}

func TestKinds(t *testing.T) {
	for in, want := range map[string]string{
		`{}`: "object", `{"a":1}`: "object", `[]`: "array", `[1]`: "array", `"a"`: "string", `""`: "string",
		`true`: "true", `false`: "none", `null`: "none", `0`: "none", `-1`: "none", `"true"`: "string", `[true]`: "array",
	} {
		if got := kindOf(mustParse(t, []byte(in))); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

// kindOf names all the kinds of a value.
func kindOf(v canonjson.Value) string {
	var kinds []string
	if _, ok := v.Object(); ok {
		kinds = append(kinds, "object")
	}
	if v.IsArray() {
		kinds = append(kinds, "array")
	}
	if _, ok := v.Text(); ok {
		kinds = append(kinds, "string")
	}
	if v.IsTrue() {
		kinds = append(kinds, "true")
	}
	if kinds == nil {
		return "none"
	}
	return strings.Join(kinds, " and ")
}

func TestElements(t *testing.T) {
	value := mustParse(t, []byte(`[ "a,]" , [1,[2]] , {"x":"]"} , -0.50 , null ]`))
	var got []string
	for element := range value.Elements() {
		got = append(got, string(element.Append(nil)))
	}
	if want := []string{`"a,]"`, `[1,[2]]`, `{"x":"]"}`, `-0.5`, `null`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for range value.Elements() {
		break // and no panic
	}
	for range mustParse(t, []byte(`{"a":1}`)).Elements() {
		t.Error("an object has elements")
	}
}

func TestMembers(t *testing.T) {
	object, ok := mustParse(t, []byte(`{"z":"}","a\"b":{"y":1},"":[","],"a":-0,"\u0001":null}`)).Object()
	if !ok || object.Len() != 5 {
		t.Fatalf("%d members", object.Len())
	}
	var got []string
	for name, member := range object.Members() {
		got = append(got, name+"="+string(member.Append(nil)))
	}
	if want := []string{`=[","]`, "\x01=null", `a=0`, `a"b={"y":1}`, `z="}"`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for range object.Members() {
		break // and no panic
	}
	for _, name := range []string{"A", "b", "\x00", "aa", "zz"} {
		if v, ok := object.Get(name); ok || len(v.Append(nil)) > 0 {
			t.Errorf("Get(%q) finds %s", name, v.Append(nil))
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		`""`: "", `"a"`: "a", `"\""`: `"`, `"\\"`: `\`, `"\\\""`: `\"`, `"\u0000\u001f\u007f"`: "\x00\x1f\x7f", `"\/"`: "/",
		`"\ud83d\udca1"`: "\U0001f4a1", `"\t\n"`: "\t\n", `"\\u0041"`: `\u0041`,
	} {
		if got, ok := mustParse(t, []byte(in)).Text(); !ok || got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestObjectWithoutMember(t *testing.T) {
	for _, c := range []struct{ in, name, want string }{
		{`{"a":1,"b":2,"c":3}`, "a", `{"b":2,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "b", `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "c", `{"a":1,"b":2}`},
		{`{"a":1}`, "a", `{}`},
		{`{"a":1}`, "A", `{"a":1}`},
		{`{}`, "a", `{}`},
		{`{"\"":{"a":1},"a":1.50}`, "a", `{"\"":{"a":1}}`},
		{`{"\u0001":1,"a":{"a":2},"b":1e1}`, "a", `{"\u0001":1,"b":10}`},
	} {
		object, _ := mustParse(t, []byte(c.in)).Object()
		if got := string(object.Without(c.name).Append(nil)); got != c.want {
			t.Errorf("%s without %q: got %s, want %s", c.in, c.name, got, c.want)
		}
		if object.Len() != mustObject(t, c.in).Len() {
			t.Errorf("%s changed", c.in)
		}
	}
}

func mustObject(t *testing.T, in string) canonjson.Object {
	t.Helper()
	object, ok := mustParse(t, []byte(in)).Object()
	if !ok {
		t.Fatalf("%s is not an object", in)
	}
	return object
}

// TestWriteASCII is the form that proof_hash is taken over. Python's
// json.dumps writes the same escapes.
func TestWriteASCII(t *testing.T) {
	for in, want := range map[string]string{
		`"plain ~"`:                      `"plain ~"`,
		"\"\x7f\"":                       `"\u007f"`,
		"\"\u0080\u00ff\"":               `"\u0080\u00ff"`,
		"\"\u4e2d\uffff\"":               `"\u4e2d\uffff"`,
		"\"\U0001f4a1\"":                 `"\ud83d\udca1"`,
		"\"\U00010000\U0010ffff\"":       `"\ud800\udc00\udbff\udfff"`,
		`"\n\u0001\\\""`:                 `"\n\u0001\\\""`,
		"{\"\u00fc\":[1.50,\"\ufffd\"]}": `{"\u00fc":[1.5,"\ufffd"]}`,
	} {
		var b strings.Builder
		if err := mustParse(t, []byte(in)).WriteASCII(&b); err != nil || b.String() != want {
			t.Errorf("%q: got %s, want %s (%v)", in, b.String(), want, err)
		}
	}
}

func TestMarshal(t *testing.T) {
	for _, c := range []struct {
		in   any
		want string
	}{
		{map[string]any{"b": 1, "a": []string{"x"}, "": nil}, `{"":null,"a":["x"],"b":1}`},
		{struct {
			Z string `json:"z"`
			A int    `json:"a"`
		}{"<&>\u2028", -5}, "{\"a\":-5,\"z\":\"<&>\u2028\"}"},
		{1e21, "1" + strings.Repeat("0", 21)},
		{0.1, "0.1"}, {math.Copysign(0, -1), "0"}, {uint64(math.MaxUint64), "18446744073709551615"},
	} {
		if got, err := canonjson.Marshal(c.in); err != nil || string(got) != c.want {
			t.Errorf("%v: got %s, want %s (%v)", c.in, got, c.want, err)
		}
	}
	for _, bad := range []any{"\xff", map[string]int{"\xff": 1}, math.NaN(), math.Inf(1), func() {}} {
		if got, err := canonjson.Marshal(bad); err == nil || got != nil {
			t.Errorf("%v: got %s, error %v", bad, got, err)
		}
	}
}
