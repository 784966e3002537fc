package restore_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// law is the table of section 8.3, read from that section of the document, which
// testdata/codes.md is word for word: every code and its phase, in its order. ""
// is a code whose phase depends on what failed.
var law = readLaw()

type lawRow struct {
	code  restore.Code
	phase restore.Phase
}

func readLaw() (rows []lawRow) {
	section, err := os.ReadFile("testdata/codes.md")
	if err != nil {
		panic(err)
	}
	for _, cell := range regexp.MustCompile("(?m)^\\| `(RESTORE_[A-Z_]+)` \\| ([A-Za-z ]+) \\|").FindAllSubmatch(section, -1) {
		row := lawRow{restore.Code(cell[1]), restore.Phase(cell[2])}
		if row.code == restore.RollbackFailed || row.code == restore.InternalError {
			row.phase = ""
		}
		rows = append(rows, row)
	}
	return rows
}

func phaseByLaw(t testing.TB, code restore.Code) restore.Phase {
	t.Helper()
	for _, l := range law {
		if l.code == code {
			return l.phase
		}
	}
	t.Fatalf("%q is not a code of the law", code)
	return ""
}

// codeConstants reads the constants of type Code from the source.
func codeConstants(t testing.TB) []restore.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, 0)
	must(t, err)
	var codes []restore.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !isIdent(spec.Type, "Code") {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		must(t, err)
		codes = append(codes, restore.Code(text))
		return false
	})
	return codes
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func TestCodesAreTheLaws(t *testing.T) {
	var want []restore.Code
	for _, l := range law {
		want = append(want, l.code)
		if got := restore.Fail(l.code, "", nil).Phase; got != l.phase {
			t.Errorf("%s is of phase %q, want %q", l.code, got, l.phase)
		}
	}
	if got := codeConstants(t); len(want) != 29 || !slices.Equal(got, want) {
		t.Errorf("constants\n%v\nwant\n%v", got, want)
	}
}

// Package commit's tests cause the codes of the later phases.
func TestEveryEarlyCodeIsCaused(t *testing.T) {
	caused := map[restore.Code]bool{}
	for _, f := range faults() {
		caused[f.code] = true
	}
	for _, l := range law {
		if early := l.phase == restore.Preflight || l.phase == restore.Planning; early != caused[l.code] {
			t.Errorf("%s, phase %q: caused here: %v", l.code, l.phase, caused[l.code])
		}
	}
}

// TestFaults: each fault gives its code, in every mode, and nothing shows that
// a restore was tried.
func TestFaults(t *testing.T) {
	harness.TempInMemory(t)
	eachFault(t, sample.All, func(t *testing.T, f fault, make func(testing.TB) *scene) {
		s := make(t)
		if got, want := s.refused(), f.want(s); got != want {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	})
}

// TestFaultsAreDeterministic: the same answer every time, whatever finishes
// first.
func TestFaultsAreDeterministic(t *testing.T) {
	harness.TempInMemory(t)
	eachFault(t, sample.Every(t, 7), func(t *testing.T, f fault, make func(testing.TB) *scene) {
		s := make(t)
		if len(s.runs) == 1 && s.chain {
			return // a chain of one has nothing that the longer one has not
		}
		want := f.want(s)
		eachProcs(func() {
			for range sample.Of(3, 10, 10) {
				if f.once {
					t.Run("again", func(t *testing.T) { again(t, f, make(t)) })
					continue
				}
				_, err := s.plan()
				if got := restoretest.FailureOf(t, err); got != want {
					t.Fatalf("got %+v\nwant %+v", got, want)
				}
			}
		})
	})
}

func again(t *testing.T, f fault, s *scene) {
	_, err := s.plan()
	if got, want := restoretest.FailureOf(t, err), f.want(s); got != want {
		t.Fatalf("got %+v\nwant %+v", got, want)
	}
}

// TestManyFaultsAtOnce: every output is wrong, and the first in the order of
// bytes is the answer, however many workers look.
func TestManyFaultsAtOnce(t *testing.T) {
	outputs := map[string]string{}
	for i := range 40 {
		outputs["o/"+strconv.Itoa(i)] = strconv.Itoa(i)
	}
	s := newScene(t, false, outputs)
	for path := range outputs {
		s.replace(path, harness.FIFO)
	}
	eachProcs(func() {
		for range 20 {
			if got := s.refused(); got.Path != "o/0" || got.Code != restore.VerifyStrictFailed {
				t.Fatalf("%+v", got)
			}
		}
	})
}

func TestCancelledBeforePlan(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := newScene(t, false, oneRun)
	before := bundletest.Census(t, s.arena)
	r, err := restore.ForRoot(ctx, s.candidate(), s.root)
	got := restoretest.FailureOf(t, err)
	if r != nil || got.Code != restore.InternalError || got.Phase != restore.Preflight {
		t.Errorf("%+v", got)
	}
	if bundletest.Census(t, s.arena) != before {
		t.Error("it left a trace")
	}
}

func zeros(n int) string { return strings.Repeat("0", n) }

// TestNoDescriptors: what this machine lacks is not a verdict on the candidate,
// nor on the restore root.
func TestNoDescriptors(t *testing.T) {
	for _, afterHashing := range []bool{false, true} {
		s := newScene(t, false, oneRun)
		if afterHashing {
			s.afterHashing(func() { limitDescriptors(t, 0) })
		}
		c := s.candidate()
		all := limitDescriptors(t, 1<<20)
		if !afterHashing {
			limitDescriptors(t, 0)
		}
		r, err := restore.ForRoot(context.Background(), c, s.root)
		limitDescriptors(t, all)
		want := restore.Failure{Code: restore.InternalError, Phase: restore.Preflight}
		if got := restoretest.FailureOf(t, err); got != want || r != nil || !errors.Is(err, syscall.EMFILE) {
			t.Errorf("after hashing %v: %v", afterHashing, err)
		}
	}
}

// limitDescriptors sets how many descriptors may be open, at most what it may
// be, and returns what it was.
func limitDescriptors(t testing.TB, n uint64) uint64 {
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	was := limit.Cur
	limit.Cur = min(n, limit.Max)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	return was
}
