package ignore_test

import (
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/ignore"
)

// FuzzPattern: no pattern and no path is too odd. What a pattern leaves out, a second one
// brings back.
func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{{"*.log", "a.log"}, {"a/**/[!x-z]?", "a/b/cd"}, {`\#[[:alpha:]\]]`, "#]"}, {"/{a}/", "{a}"}, {"[--0]", "\xff"}} {
		f.Add(seed[0], seed[1])
	}
	root, err := pathsafe.OpenRoot(f.TempDir())
	must(f, err)
	f.Fuzz(func(t *testing.T, pattern, path string) {
		if _, err := pathsafe.Found(path); err != nil {
			return
		}
		r, err := ignore.New(root, []string{pattern})
		if err != nil {
			return
		}
		out, err := r.Match(path, true)
		if err != nil && len(path) < pathsafe.MaxPath {
			t.Fatal(err)
		}
		both, err := ignore.New(root, []string{pattern, "!" + pattern})
		if err != nil || out == "" {
			return // what begins with an exclamation mark or a number sign has another meaning then
		}
		if why, err := both.Match(path, true); why != "" && pattern[0] != '!' || err != nil {
			t.Fatalf("%q leaves out %q: %q, %v", pattern, path, why, err)
		}
	})
}
