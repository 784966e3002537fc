package verify_test

import (
	"encoding/hex"
	"os"
	"reflect"
	"testing"

	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// list verifies what was signed, without a project root.
func list(t testing.TB, r *bundletest.Run) (*verify.Listing, error) {
	t.Helper()
	run, err := verify.OpenRun(nil, r.Dir)
	must(t, err)
	defer run.Close()
	l, err := verify.List(t.Context(), run)
	if (l == nil) != (err != nil) {
		t.Fatalf("listing %v, error %v", l, err)
	}
	return l, err
}

// TestListing: a listing has the same as the bundle, even if its outputs no longer exist.
func TestListing(t *testing.T) {
	r := newRun(t)
	b, err := strict(t, r)
	must(t, err)
	must(t, os.RemoveAll(at(r, "dist")))
	l, err := list(t, r)
	must(t, err)
	if l.Root() != b.Root() || l.ValidatorID() != b.ValidatorID() || l.RunID() != "run-1" || l.Len() != 2 {
		t.Errorf("%+v", l)
	}
	spec, err := canonjson.Parse(r.Read(bundle.TaskSpec))
	must(t, err)
	if got := string(l.TaskSpec().Append(nil)); got != string(spec.Append(nil)) {
		t.Errorf("task spec %s", got)
	}
	got := map[string]string{}
	last := ""
	for e := range l.Entries() {
		if e.Path.String() <= last {
			t.Errorf("%q after %q", e.Path, last)
		}
		last = e.Path.String()
		got[last] = bundle.HashPrefix + hex.EncodeToString(e.Digest[:])
	}
	if want := map[string]string{"dist/a": bundletest.Hash("aaa"), "dist/b": bundletest.Hash("bbb")}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for range l.Entries() {
		break
	}
}

// TestListingRejects with the codes of the strict law, in its order: each run has
// the fault of its phase and that of every later one.
func TestListingRejects(t *testing.T) {
	faults := []struct {
		code verify.Code
		make func(r *bundletest.Run)
	}{
		{verify.DecisionInvalid, func(r *bundletest.Run) { r.Edit(bundle.Status, set("status", "failed")); r.Sign() }},
		{verify.OutputMissing, func(r *bundletest.Run) {
			r.EditHashes(func(h map[string]any) { h["../x"] = bundletest.Hash("") })
			r.Sign()
		}},
		{verify.ForbiddenArtifact, func(r *bundletest.Run) { must(t, os.Mkdir(r.Path("logs"), 0o755)) }},
		{verify.RestorationFailed, func(r *bundletest.Run) {
			r.Edit(bundle.Proof, set("restoration_result", map[string]any{"verified": false}))
		}},
		{verify.SignatureMalformed, func(r *bundletest.Run) { r.Edit(bundle.Signature, set("payload_type", "x")) }},
		{verify.BundleRootMismatch, func(r *bundletest.Run) { r.Edit(bundle.TaskSpec, set("task_id", "x")) }},
		{verify.ArtifactMalformed, func(r *bundletest.Run) { r.EditHashes(func(h map[string]any) { h["dist/a"] = 1 }) }},
		{verify.FieldExtra, func(r *bundletest.Run) { r.Edit(bundle.Identity, set("x", 1)) }},
		{verify.ArtifactMalformed, func(r *bundletest.Run) { r.WriteRaw(bundle.Status, []byte("{")) }},
		{verify.ArtifactMissing, func(r *bundletest.Run) { r.Remove(bundle.TaskSpec) }},
	}
	r := newRun(t)
	for _, f := range faults {
		f.make(r)
		_, err := list(t, r)
		if reject := rejected(t, err); reject.Code != f.code {
			t.Errorf("%s %v, want %s", reject.Code, reject.Details, f.code)
		}
		if _, err := strict(t, r); rejected(t, err).Code != f.code {
			t.Errorf("strict says %v, want %s", err, f.code)
		}
	}
}

// TestListingForms: what has not the form of the law is rejected, as when it is
// read.
func TestListingForms(t *testing.T) {
	for path, code := range map[string]verify.Code{
		"": verify.OutputMissing, "/a": verify.OutputMissing, "a/": verify.OutputMissing, "a//b": verify.OutputMissing,
		".": verify.OutputMissing, "a/../b": verify.OutputMissing, "a\\b": verify.OutputMissing, "a\x00": verify.OutputMissing,
	} {
		r := newRun(t)
		r.EditHashes(func(h map[string]any) { h[path] = bundletest.Hash("") })
		r.Sign()
		_, err := list(t, r)
		if rejected(t, err).Code != code || rejected(t, err).Details["path"] != path {
			t.Errorf("%q: %v", path, err)
		}
	}
	good := bundletest.Hash("aaa")
	for _, hash := range []string{"", good[7:], good[:70], good + "0", "SHA256:" + good[7:], "sha256:" + "Z" + good[8:]} {
		r := newRun(t)
		r.EditHashes(func(h map[string]any) { h["dist/a"] = hash })
		r.Sign()
		_, err := list(t, r)
		if rejected(t, err).Code != verify.HashMismatch || rejected(t, err).Details["path"] != "dist/a" {
			t.Errorf("%q: %v", hash, err)
		}
	}
}

// TestListingIsSealed as a bundle is.
func TestListingIsSealed(t *testing.T) {
	typ := reflect.TypeFor[verify.Listing]()
	for i := range typ.NumField() {
		if typ.Field(i).IsExported() {
			t.Errorf("%s can be set from outside", typ.Field(i).Name)
		}
	}
	methods := reflect.PointerTo(typ)
	for i := range methods.NumMethod() {
		checkMethod(t, methods.Method(i))
	}
	var zero verify.Listing
	for range zero.Entries() {
		t.Error("the zero Listing lists something")
	}
	if zero.Root() != "" || zero.ValidatorID() != "" || zero.RunID() != "" || zero.Len() != 0 || zero.TaskSpec().Len() != 0 {
		t.Error("the zero Listing holds something")
	}
}
