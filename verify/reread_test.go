package verify_test

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// said returns everything that can be read from a bundle.
func said(b *verify.Bundle) map[string]any {
	outputs := map[string]any{}
	for o := range b.Outputs() {
		outputs[o.Path().String()] = []any{o.Size(), o.Hash(), o.Perm(), o.ModTime()}
	}
	return map[string]any{"id": b.RunID(), "root": b.Root(), "validator": b.ValidatorID(), "len": b.Len(), "outputs": outputs}
}

// sameVerdict verifies in both ways, by both laws, and requires one verdict.
func sameVerdict(t *testing.T, name string, r *bundletest.Run) {
	t.Helper()
	run := openRuns(t, r)[0]
	for law, do := range map[string]func(w verify.Watch) (any, error){
		"strict": func(w verify.Watch) (any, error) {
			b, err := verify.Strict(t.Context(), run, w)
			if err != nil {
				return nil, err
			}
			return said(b), nil
		},
		"gate": func(w verify.Watch) (any, error) {
			g, err := verify.Gate(t.Context(), run, w)
			if err != nil {
				return nil, err
			}
			b, ok := g.Bundle()
			if !ok {
				return []any{g.RunID(), slices.Collect(g.Paths())}, nil
			}
			return said(b), nil
		},
	} {
		want, wantErr := do(verify.Watch{})
		got, gotErr := do(verify.Watch{Reread: true})
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(gotErr, wantErr) {
			t.Errorf("%s, %s: %v, %v; reread %v, %v", name, law, want, wantErr, got, gotErr)
		}
	}
}

// TestRereadIsTheSameVerdict: tags are for later, and have no say.
func TestRereadIsTheSameVerdict(t *testing.T) {
	sameVerdict(t, "good", newRun(t))
	big, _, _ := bigRun(t)
	sameVerdict(t, "big", big)
	tried := sample.Every(t, 11)
	for i, f := range slices.Concat(strictFaults, fieldCases()) {
		if !tried.Has(i + 1) {
			continue
		}
		r := newRun(t)
		spoil(r, f)
		sameVerdict(t, f.name, r)
	}
	for _, v := range sample.Pick(t, 3, bundletest.Vectors[rootVector](t, "bundle_root")) {
		r := v.run(t)
		r.Sign()
		sameVerdict(t, v.Name, r)
	}
}

// TestRereadOutputs: outputs that are read through tags are as bound as others.
func TestRereadOutputs(t *testing.T) {
	r, _, content := bigRun(t)
	b, err := strictReread(t, r)
	must(t, err)
	o := outputAt(t, b, "dist/big")
	if o.Hash() != bundletest.Hash(content) || outputAt(t, b, "dist/empty").Hash() != bundletest.Hash("") {
		t.Errorf("hash %s", o.Hash())
	}
	if got := readAll(t, o); got != content {
		t.Errorf("read %d bytes", len(got))
	}
	for _, cache := range []*blockhash.Cache{nil, blockhash.NewCache(1 << 20)} {
		source, err := o.Open(cache)
		must(t, err)
		defer source.Close()
		for off := 0; off < len(content); off += blockhash.TagBlockSize / 2 {
			flip(t, r, off)
			p := []byte{0xa5}
			var mismatch *blockhash.MismatchError
			n, err := source.ReadAt(p, int64(off))
			if n != 0 || !errors.As(err, &mismatch) || p[0] != 0xa5 || mismatch.Block != int64(off/blockhash.TagBlockSize) {
				t.Errorf("byte %d: %d bytes, %v", off, n, err)
			}
			flip(t, r, off)
		}
	}
}

// TestOutputHashIsTheSignedOne for every length of file.
func TestOutputHashIsTheSignedOne(t *testing.T) {
	outputs := map[string]string{"empty": "", "one": "1", "tag": strings.Repeat("t", blockhash.TagBlockSize), "more": strings.Repeat("m", 3*blockhash.BlockSize+1)}
	r := bundletest.New(t).Run("run-1", outputs)
	for _, verifyIt := range []func(testing.TB, *bundletest.Run) (*verify.Bundle, error){strict, strictReread} {
		b, err := verifyIt(t, r)
		must(t, err)
		for path, content := range outputs {
			if got := outputAt(t, b, path).Hash(); got != bundletest.Hash(content) {
				t.Errorf("%s: %s", path, got)
			}
		}
	}
}

func TestClaimedCompletion(t *testing.T) {
	claim := func(r *bundletest.Run) (when time.Time, ok bool) {
		t.Helper()
		run := openRuns(t, r)[0]
		must(t, inTime(t, func() error {
			when, ok = run.ClaimedCompletion()
			return nil
		}))
		return when, ok
	}
	for text, want := range map[string]string{
		"2026-01-02T03:04:05Z":           "2026-01-02T03:04:05Z",
		"2026-01-02t03:04:05z":           "2026-01-02T03:04:05Z",
		"2026-01-02T03:04:05.25+14:00":   "2026-01-01T13:04:05.25Z",
		"9999-12-31T23:59:59.999999999Z": "9999-12-31T23:59:59.999999999Z",
		"2016-12-31T23:59:60Z":           "2017-01-01T00:00:00Z",
		"2017-01-01T00:59:60.5+01:00":    "2017-01-01T00:00:00.5Z",
		"":                               "",
		"yesterday":                      "",
		"2026-02-30T00:00:00Z":           "",
		"2026-01-02":                     "",
		"2026-01-02T03:04:05Z ":          "",
	} {
		r := newRun(t)
		r.Edit(bundle.Status, set("completed_at", text)) // this is not signed
		when, ok := claim(r)
		if ok != (want != "") || ok && when.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q: %v, %v", text, when, ok)
		}
	}
	bad := map[string]func(path string) error{
		"no field": func(path string) error { return writeFile(path, `{"status":"success"}`) }, "a number": func(path string) error { return writeFile(path, `{"completed_at":1}`) },
		"null": func(path string) error { return writeFile(path, `{"completed_at":null}`) }, "no JSON": func(path string) error { return writeFile(path, `{`) },
		"twice": func(path string) error {
			return writeFile(path, `{"completed_at":"2026-01-02T03:04:05Z","completed_at":"2026-01-02T03:04:05Z"}`)
		},
		"an array": func(path string) error { return writeFile(path, `["2026-01-02T03:04:05Z"]`) }, "empty": func(path string) error { return writeFile(path, "") },
		"removed": func(string) error { return nil }, "huge": func(path string) error {
			return errors.Join(writeFile(path, "{}"), os.Truncate(path, 1<<40))
		},
	}
	for name, kind := range special() {
		bad[name] = kind
	}
	for name, do := range bad {
		r := newRun(t)
		replaceBy(t, r.Path(bundle.Status), do)
		if when, ok := claim(r); ok || !when.IsZero() {
			t.Errorf("%s: %v", name, when)
		}
	}
	r := newRun(t)
	must(t, os.RemoveAll(r.Dir))
	if when, ok := claim(r); ok || !when.IsZero() {
		t.Errorf("no run directory: %v", when)
	}
}
