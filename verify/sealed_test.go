package verify_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/verify"
)

// sealed are the types that only verifying makes, and what Run, which nothing
// vouches for, has in common with them.
var sealed = []reflect.Type{
	reflect.TypeFor[verify.Bundle](), reflect.TypeFor[verify.Chain](), reflect.TypeFor[verify.Output](), reflect.TypeFor[verify.Artifact](),
	reflect.TypeFor[verify.Gated](), reflect.TypeFor[verify.GatedChain](), reflect.TypeFor[verify.Run](),
	reflect.TypeFor[verify.Attested](), reflect.TypeFor[verify.AttestedOutput](),
}

// TestSealed walks the types: nothing of them can be set from outside, and no method returns a
// slice, a map or a pointer to what is inside.
func TestSealed(t *testing.T) {
	for _, typ := range sealed {
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() || f.Anonymous {
				t.Errorf("%s.%s can be set from outside", typ, f.Name)
			}
		}
		methods := reflect.PointerTo(typ)
		for i := range methods.NumMethod() {
			checkMethod(t, methods.Method(i))
		}
	}
}

// givesBundles are methods that hand out sealed values, or read a file anew.
var givesBundles = map[string]bool{"Bundle": true, "Changes": true, "Attested": true, "Blocks": true, "Metadata": true}

func checkMethod(t *testing.T, m reflect.Method) {
	t.Helper()
	for _, prefix := range []string{"Set", "Unmarshal", "Add", "Decode", "Scan", "Gob"} {
		if strings.HasPrefix(m.Name, prefix) {
			t.Errorf("%s: %s changes a value that was verified", m.Type.In(0), m.Name)
		}
	}
	for i := range m.Type.NumOut() {
		out := m.Type.Out(i)
		switch out.Kind() {
		case reflect.Slice, reflect.Map, reflect.Pointer:
			if !givesBundles[m.Name] && !isHandle(out) {
				t.Errorf("%s: %s gives away a %s", m.Type.In(0), m.Name, out)
			}
		}
	}
}

// isHandle: these are made anew for each caller.
func isHandle(typ reflect.Type) bool {
	name := typ.String()
	return name == "*blocktable.Reader" || name == "*blockhash.Table" || name == "*os.File" || name == "*pathsafe.File" || name == "*verify.Source" || name == "*blockhash.Reader"
}

// TestZeroValues hold nothing.
func TestZeroValues(t *testing.T) {
	var b verify.Bundle
	if b.Root() != "" || b.RunID() != "" || b.ValidatorID() != "" || b.Len() != 0 || len(pathsOf(&b)) > 0 {
		t.Error("the zero Bundle holds something")
	}
	var c verify.Chain
	for range c.Bundles() {
		t.Error("the zero Chain holds a bundle")
	}
	if c.Root() != "" {
		t.Error("the zero Chain has a root")
	}
	var a verify.Attested
	if table, err := a.Blocks(); a.Root() != "" || a.RunID() != "" || a.ValidatorID() != "" || a.Len() != 0 || table != nil || err != nil {
		t.Error("the zero Attested holds something")
	}
	for range a.Outputs() {
		t.Error("the zero Attested holds an output")
	}
	var g verify.Gated
	if inner, ok := g.Attested(); ok || inner != nil {
		t.Error("the zero Gated holds an attested bundle")
	}
	if inner, ok := g.Bundle(); ok || inner != nil || g.RunID() != "" {
		t.Error("the zero Gated holds a bundle")
	}
	for range g.Paths() {
		t.Error("the zero Gated holds a path")
	}
	var gc verify.GatedChain
	for range gc.Bundles() {
		t.Error("the zero GatedChain holds a bundle")
	}
	if gc.Root() != "" {
		t.Error("the zero GatedChain has a root")
	}
	var r verify.Run
	if r.ID() != "" || r.Close() != nil {
		t.Error("the zero Run is one")
	}
}

// TestIteratorsStop: an iterator ends when its caller stops.
func TestIteratorsStop(t *testing.T) {
	runs := newChain(t, 3)
	c, err := strictChain(t, runs...)
	must(t, err)
	n := 0
	for b := range c.Bundles() {
		for range b.Outputs() {
			n++
			break
		}
		break
	}
	r := newRun(t)
	g, err := gate(t, r)
	must(t, err)
	for range g.Paths() {
		n++
		break
	}
	if n != 2 {
		t.Errorf("%d steps", n)
	}
}
