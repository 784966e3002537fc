package review

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/test/terminal"
)

// childVariable names what breaks in a review that a process of its own shows.
const childVariable = "REVIEW_BREAKS"

// TestMain shows a review instead of running tests, in a process of its own.
func TestMain(m *testing.M) {
	in := os.Getenv(childVariable)
	if in == "" {
		drawTime = time.Millisecond // what a terminal sends is given by the tests
		os.Exit(m.Run())
	}
	over := overview(some()...)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	b := &breaks{source{over: &over}, in}
	result, err := Run(ctx, os.Stdin, os.Stderr, Config{Overview: over, Chosen: []int{1}, Source: b})
	fmt.Printf("panic %t, canceled %t, given %q\n", errors.Is(err, tea.ErrProgramPanic), errors.Is(err, context.Canceled), result.Statement)
}

// breaks is a source that panics: in a key, or while it reads.
type breaks struct {
	source
	in string
}

func (b *breaks) Draft(c preview.Choice) preview.Draft {
	if b.in == "draft" && b.drafts > 0 {
		panic("draft")
	}
	return b.source.Draft(c)
}

func (b *breaks) Changes(ctx context.Context, number int) ([]byte, string, error) {
	if b.in == "changes" && number > 1 {
		panic("changes")
	}
	return b.source.Changes(ctx, number)
}

// TestPanicRestoresTerminal: a panic and a signal end the review with an error, and the terminal is as it was.
func TestPanicRestoresTerminal(t *testing.T) {
	for _, c := range []struct{ in, typed, want string }{
		{"draft", "x", "panic true, canceled false"}, {"changes", "G", "panic true, canceled false"}, {"nothing", "", "panic false, canceled true"},
	} {
		t.Run(c.in, func(t *testing.T) {
			seat := terminal.Sit(t, 80, 24)
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			var out strings.Builder
			cmd.Env = append(os.Environ(), childVariable+"="+c.in, "TERM=xterm")
			cmd.Stdin, cmd.Stderr, cmd.Stdout = seat.Program, seat.Program, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			seat.Await(t, "to decide", "README.md")
			if seat.Type(t, c.typed); c.typed == "" {
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
			_ = cmd.Wait()
			if want := c.want + ", given \"\"\n"; out.String() != want {
				t.Errorf("%q, want %q", out.String(), want)
			}
			raw := seat.IsRaw(t)
			seat.Hang(t)
			if raw || seat.IsFull() || seat.IsBare() {
				t.Errorf("left raw: %t, full: %t, without a cursor: %t", raw, seat.IsFull(), seat.IsBare())
			}
		})
	}
}

// many are 20,000 files, in directories that differ in size.
func many() report.Overview {
	var paths []string
	for n := range 20_000 {
		paths = append(paths, fmt.Sprintf("d%03d/e%02d/%s-%05d", n%(n%300+1), n%7, strings.Repeat("f", n%40), n))
	}
	return overview(paths...)
}

// TestCursorKeysRedrawLittle: a key that moves makes neither the tree nor the statement anew, and reads what is
// looked at and nothing else.
func TestCursorKeysRedrawLittle(t *testing.T) {
	s := sit(t, many(), 80, 24)
	if len(s.tree.rows) > 400 || len(s.src.read) > 1 {
		t.Errorf("%d rows, and read %v", len(s.tree.rows), s.src.read)
	}
	drafts, first := s.src.drafts, &s.tree.rows[0]
	s.press("down", "pgdown", "up", "end", "home", "tab", "down", "tab", "c", "down", "c", "?", "esc")
	if s.src.drafts != drafts || &s.tree.rows[0] != first {
		t.Errorf("%d drafts", s.src.drafts-drafts)
	}
	s.press("enter")
	if s.src.drafts != drafts || len(s.src.read) > 1 {
		t.Errorf("to unfold: %d drafts, read %v", s.src.drafts-drafts, s.src.read)
	}
}

// BenchmarkFirst is the first screen of 20,000 files.
func BenchmarkFirst(b *testing.B) {
	over := many()
	for b.Loop() {
		s := sit(b, over, 200, 60)
		_ = s.View()
	}
}

// BenchmarkKey is a key that moves, unfolds, filters or chooses among 20,000 files.
func BenchmarkKey(b *testing.B) {
	for name, keys := range map[string][]string{
		"move": {"down", "up"}, "unfold": {"enter", "enter"}, "filter": {"f", "f", "f", "f"}, "choose": {"x", "x"}, "search": {"n"}, "conflicts": {"c", "c"},
	} {
		b.Run(name, func(b *testing.B) {
			s := sit(b, many(), 200, 60)
			s.search = "19999"
			for n := 0; b.Loop(); n++ {
				s.press(keys[n%len(keys)])
				_ = s.View()
			}
		})
	}
}
