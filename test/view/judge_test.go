package view

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// TestJudge is the control of all readers: what must not be seen is noticed.
func TestJudge(t *testing.T) {
	e := expectation{Sizes: sizes{"f": 4 << 20}, Bad: map[string][]int64{"f": {1 << 20}}, Loose: map[string]bool{"loose": true}}
	right := func(name string, off int64, n int) []byte { return content(name, off, n) }
	for what, test := range map[string]struct {
		err  error
		fine bool
	}{
		"right":                    {e.judge("f", 5, 10, right("f", 5, 10), nil), true},
		"EIO over a tampered byte": {e.judge("f", 1<<20-5, 10, nil, errIO), true},
		"EIO after right bytes":    {e.judge("f", 1<<20-5, 10, right("f", 1<<20-5, 5), errIO), true},
		"EIO near":                 {e.judge("f", 1<<20+10, 10, nil, errIO), true},
		"loose":                    {e.judge("loose", 0, 10, nil, errIO), true},
		"a wrong byte":             {e.judge("f", 5, 10, append(right("f", 5, 9), 0), nil), false},
		"of another place":         {e.judge("f", 5, 10, right("f", 6, 10), nil), false},
		"of another file":          {e.judge("f", 5, 10, right("g", 5, 10), nil), false},
		"a tampered byte":          {e.judge("f", 1<<20-5, 10, right("f", 1<<20-5, 10), nil), false},
		"short":                    {e.judge("f", 5, 10, right("f", 5, 9), nil), false},
		"EIO far away":             {e.judge("f", 3<<20, 10, nil, errIO), false},
		"another error":            {e.judge("f", 1<<20, 10, nil, syscall.ENOTCONN), false},
		"wrong though loose":       {e.judge("loose", 0, 1, []byte{^right("loose", 0, 1)[0]}, nil), false},
	} {
		if (test.err == nil) != test.fine {
			t.Errorf("%s: %v", what, test.err)
		}
	}
}

// TestReadersNotice has readers read a file that is not what they expect.
func TestReadersNotice(t *testing.T) {
	p := harness.New(t, harness.Files{"file": strings.Repeat("signed, but not expected ", 1000)})
	v := p.Mount(t, harness.Mounting{})
	c := startReaders(t, orders{View: v.Dir, Expect: expectation{Sizes: sizes{"file": 25_000}}, Threads: 5, Reads: 2})
	c.begin()
	if said := c.line(""); !strings.Contains(said, "wrong bytes") {
		t.Errorf("the readers notice nothing: %s", said)
	}
}

// TestTable holds the table in doc.go to the tree.
func TestTable(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	harness.Must(t, err)
	there := map[string]bool{}
	harness.Must(t, filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllSubmatch(raw, -1) {
			there[filepath.Base(filepath.Dir(path))+"."+string(m[1])] = true
		}
		return err
	}))
	named := regexp.MustCompile(`(\w+\.)?\b(Test\w+)`).FindAllStringSubmatch(string(doc), -1)
	for _, m := range named {
		name := m[1] + m[2]
		if m[1] == "" {
			name = "view." + m[2]
		}
		if !there[name] {
			t.Errorf("there is no test %s", name)
		}
	}
	if len(named) < 20 {
		t.Errorf("the table names %d tests", len(named))
	}
}
