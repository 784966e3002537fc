package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

const committed = "../../testdata/conformance"

// fewest is a floor: a loader that finds fewer cases has lost some.
const fewest = 1000

// loaded are all cases, which are read once.
var loaded = sync.OnceValues(func() ([]suite.Case, error) { return suite.Load(committed) })

func load(t *testing.T) []suite.Case {
	t.Helper()
	cases, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < fewest {
		t.Fatalf("found only %d cases", len(cases))
	}
	return cases
}

// runner runs a program in a directory that other users can get through.
func runner(t *testing.T, bin string) *suite.Runner {
	t.Helper()
	dir := harness.MemoryDir(t) // syncs are many, and cost nothing there
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &suite.Runner{Bin: bin, Dir: dir}
}

// TestSuite runs all cases against the program.
func TestSuite(t *testing.T) {
	cases := load(t)
	failed := 0
	commands := runner(t, harness.Binary()).RunAll(t.Context(), cases, func(c suite.Case, err error) {
		if err != nil {
			failed++
			t.Errorf("%s\n%v", c.Name, err)
		}
	})
	t.Logf("%d cases, %d commands, %d cases failed", len(cases), commands, failed)
}

// script is a program that another one stands before.
func script(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+lines+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// few are cases of every kind.
func few(t *testing.T) (accepting, rejecting []suite.Case) {
	t.Helper()
	for i, c := range load(t) {
		switch {
		case c.Ordinary:
		case strings.HasPrefix(c.Name, "accept-") && i%10 == 0:
			accepting = append(accepting, c)
		case !strings.HasPrefix(c.Name, "accept-") && i%60 == 0:
			rejecting = append(rejecting, c)
		}
	}
	if len(accepting) < 5 || len(rejecting) < 10 {
		t.Fatalf("%d accepting, %d rejecting cases", len(accepting), len(rejecting))
	}
	return accepting, rejecting
}

// controls is how many of the cases of a negative control are run in the sample.
const controls = 4

// allFail fails unless every case fails with this program, for this reason. In the
// sample it tries some of the cases.
func allFail(t *testing.T, bin, reason string, cases []suite.Case) {
	t.Helper()
	cases = sample.Pick(t, controls, cases)
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	runner(t, bin).RunAll(t.Context(), cases, func(c suite.Case, err error) {
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: the error does not have %q: %v", c.Name, reason, err)
		}
	})
}

// TestAlwaysOK: a program that accepts everything fails in every rejecting case,
// and one that rejects everything in every accepting case.
func TestAlwaysOK(t *testing.T) {
	accepting, rejecting := few(t)
	allFail(t, script(t, `printf '{"code":"OK","details":{},"ok":true}'`), "exit 0", rejecting)
	allFail(t, script(t, `printf '{"code":"FIELD_EXTRA","details":{},"message":"","ok":false}'; exit 1`), "exit 1", accepting)
	allFail(t, script(t, `exit 2`), "stdout is not one JSON object", append(rejecting, accepting...))
	allFail(t, script(t, `printf '{"ok":true} '`), "not", rejecting)
	allFail(t, "/nonexistent", "no such file", rejecting)
}

// TestTouchedTree: whatever a program answers, it must leave everything as it
// was, but for what a restore makes.
func TestTouchedTree(t *testing.T) {
	accepting, rejecting := few(t)
	all := append(rejecting, accepting...)
	before := func(lines string) string {
		return script(t, fmt.Sprintf("%s\nexec %q \"$@\"", lines, harness.Binary()))
	}
	allFail(t, before("touch root/extra"), `"root/extra"`, all)
	allFail(t, before("mkdir -p root/.hidden"), `"root/.hidden"`, all)
	allFail(t, before("touch beside"), `"beside"`, all)
	allFail(t, before("chmod 700 project"), `"project" was touched`, all)
	allFail(t, before("rmdir root 2>/dev/null"), `"root"`, onlyEmptyRoot(all))
}

func onlyEmptyRoot(cases []suite.Case) (out []suite.Case) {
	for _, c := range cases {
		verifies, inRoot := c.Commands[0].Args[0] == "verify", false
		for _, e := range c.Entries {
			inRoot = inRoot || strings.HasPrefix(e.Path, "root/") && !e.After
		}
		if verifies && !inRoot {
			out = append(out, c)
		}
	}
	return out
}

// spoil makes an expectation wrong.
var spoil = map[string]func(*suite.Case) bool{
	"exit": func(c *suite.Case) bool {
		c.Commands[0].Exit += 3
		return true
	},
	"code": func(c *suite.Case) bool {
		old := c.Commands[0].Result
		c.Commands[0].Result = strings.Replace(strings.Replace(old, `"code":"`, `"code":"X`, 1), `"code":null`, `"code":"X"`, 1)
		return c.Commands[0].Result != old
	},
	"a member more": func(c *suite.Case) bool {
		c.Commands[0].Result = strings.TrimSuffix(c.Commands[0].Result, "}") + `,"zzz":1}`
		return true
	},
	"a member less": func(c *suite.Case) bool {
		old := c.Commands[0].Result
		c.Commands[0].Result = strings.Replace(strings.Replace(old, `,"ok":true`, "", 1), `,"ok":false`, "", 1)
		return c.Commands[0].Result != old
	},
	"a detail": func(c *suite.Case) bool {
		old := c.Commands[0].Result
		c.Commands[0].Result = strings.Replace(old, `"details":{`, `"details":{"zzz":1,`, 1)
		c.Commands[0].Result = strings.Replace(c.Commands[0].Result, ",}", "}", 1)
		return c.Commands[0].Result != old && strings.Contains(old, `"ok":false`)
	},
	"if given": func(c *suite.Case) bool {
		old := c.Commands[0].IfGiven
		c.Commands[0].IfGiven = strings.Replace(old, `:"`, `:"x`, 1)
		return old != ""
	},
	"a restored byte": func(c *suite.Case) bool {
		for i, e := range c.Entries {
			if e.After {
				c.Entries[i].Content += "x"
				return true
			}
		}
		return false
	},
	"a restored file less": func(c *suite.Case) bool {
		n := len(c.Entries) - 1
		after := c.Entries[n].After
		c.Entries = c.Entries[:n]
		return after
	},
	"a restored file more": func(c *suite.Case) bool {
		if !c.Entries[len(c.Entries)-1].After {
			return false
		}
		c.Entries = append(c.Entries, suite.Entry{Path: "root/none", After: true})
		return true
	},
}

// TestWrongExpectations: with any of these the program, which is right, fails.
func TestWrongExpectations(t *testing.T) {
	for name, act := range spoil {
		t.Run(name, func(t *testing.T) {
			accepting, rejecting := few(t)
			var spoilt []suite.Case
			for _, c := range append(accepting[:5], rejecting...) {
				c.Commands, c.Entries = slices.Clone(c.Commands), slices.Clone(c.Entries)
				if act(&c) {
					spoilt = append(spoilt, c)
				}
			}
			allFail(t, harness.Binary(), "", spoilt)
		})
	}
}

// TestWrongChanges: what a change set replaces, removes and makes executable is looked at.
func TestWrongChanges(t *testing.T) {
	spoil := map[string]func(*suite.Entry) bool{
		"a removed file stays": func(e *suite.Entry) bool {
			was := e.Gone
			e.Gone = false
			return was
		},
		"a file that is kept goes": func(e *suite.Entry) bool {
			isKept := e.Path == "root/out/b.txt" && !e.After
			e.Gone = isKept
			return isKept
		},
		"a replaced file stays": func(e *suite.Entry) bool {
			is := e.After && (e.Path == "root/app.py" || e.Path == "root/out/a.txt")
			if is {
				e.Path = "root/none"
			}
			return is
		},
		"other content comes": func(e *suite.Entry) bool {
			is := e.After && (e.Path == "root/app.py" || e.Path == "root/out/a.txt")
			e.Content += "x"
			return is
		},
		"it is not executable": func(e *suite.Entry) bool {
			is := e.After && e.Mode == 0o755
			e.Mode = 0o644
			return is
		},
	}
	for name, act := range spoil {
		t.Run(name, func(t *testing.T) {
			var spoilt []suite.Case
			for _, c := range load(t) {
				switch c.Name {
				case "accept-changes-clean", "accept-changes-executable", "accept-replace-one":
					for i := range c.Entries {
						was := c.Entries[i]
						if c.Entries = slices.Clone(c.Entries); act(&c.Entries[i]) {
							spoilt = append(spoilt, c)
							break
						}
						c.Entries[i] = was
					}
				}
			}
			allFail(t, harness.Binary(), "root/", spoilt)
		})
	}
}

// TestNoCase: a suite without cases, and one that cannot be read, fail.
func TestNoCase(t *testing.T) {
	bad := t.TempDir()
	if err := os.WriteFile(filepath.Join(bad, "x.txtar"), []byte("text\n\nlaw: none\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]options{
		"no program":      {dir: committed},
		"empty directory": {bin: harness.Binary(), dir: t.TempDir()},
		"no directory":    {bin: harness.Binary(), dir: "nonexistent"},
		"no match":        {bin: harness.Binary(), dir: committed, run: "^nothing$"},
		"bad pattern":     {bin: harness.Binary(), dir: committed, run: "("},
		"bad case":        {bin: harness.Binary(), dir: bad},
		"bad program":     {bin: script(t, "exit 1"), dir: committed, run: "^accept-single$"},
	} {
		if err := run(t.Context(), o, io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	harness.TempInMemory(t)
	if err := run(t.Context(), options{bin: harness.Binary(), dir: committed, run: "^(accept-single|05-pair-payload-.*)$"}, io.Discard); err != nil {
		t.Error(err)
	}
}

// TestBadCases: what is not a case is not read.
func TestBadCases(t *testing.T) {
	good := "text\n\nlaw: x\ncommand: verify a\nexit: 0\nresult: {}\n-- a dir --\n"
	if _, err := suite.Parse("good", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"no text": {"\n\n", "\n"}, "no law": {"law: x\n", ""}, "no command": {"command: verify a\nexit: 0\nresult: {}\n", ""},
		"unknown command": {"verify a", "seal a"}, "no exit": {"exit: 0\n", ""}, "no result": {"result: {}\n", ""},
		"unknown key": {"exit: 0", "exits: 0"}, "not JSON": {"{}", "{"}, "not a number": {"exit: 0", "exit: x"},
		"no tree": {"-- a dir --\n", ""}, "unknown option": {"a dir", "a door"}, "half an escape": {"a dir", "a%2 dir"},
		"bad escape": {"verify a", "verify %zz"}, "bad mode": {"a dir", "a mode=x"}, "bad hex": {"-- a dir --\n", "-- a hex --\nxy\n"},
		"key before command": {"law: x\n", "law: x\nexit: 1\n"}, "no value": {"law: x", "law"},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatal(errors.New(name))
		}
		if _, err := suite.Parse(name, []byte(bad)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
