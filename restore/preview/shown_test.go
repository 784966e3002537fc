package preview_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/restoretest"
)

// TestShownIsACopy checks that changes of a Shown do not affect the preview.
func TestShownIsACopy(t *testing.T) {
	for name, p := range map[string]*preview.Preview{"mixed": restoretest.Mixed(t), "changes": restoretest.ChangeScene(t).Preview()} {
		before, shown := jsonOf(t, p), p.Shown()
		if n := scribble(reflect.ValueOf(&shown).Elem()); n < 150 {
			t.Errorf("%s: only %d values were changed: this test no longer finds them", name, n)
		}
		if again := p.Shown(); !bytes.Equal(jsonOf(t, p), before) || reflect.DeepEqual(again, shown) {
			t.Errorf("%s: the preview has changed", name)
		}
		report := reportOf(t, p)
		if shown := p.Shown(); len(shown.Block.Conflicts) > 0 {
			scribble(reflect.ValueOf(&shown).Elem())
		}
		if reportOf(t, p) != report {
			t.Errorf("%s: the report has changed", name)
		}
	}
}

// scribble changes everything that can be reached from a value and set, and counts it.
func scribble(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				n += scribble(v.Field(i))
			}
		}
		return n
	case reflect.Slice:
		for i := range v.Len() {
			n += scribble(v.Index(i))
		}
		return n
	case reflect.Pointer:
		if !v.IsNil() {
			n = scribble(v.Elem())
		}
		return n
	case reflect.String:
		v.SetString(v.String() + "!")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint32:
		v.SetUint(v.Uint() + 1)
	default:
		panic(v.Kind().String() + " is not changed by this test")
	}
	return 1
}
