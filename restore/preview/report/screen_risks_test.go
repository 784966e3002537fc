package report_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/scope"
)

func recapOf(t *testing.T, p *preview.Preview, columns int) string {
	t.Helper()
	var text strings.Builder
	must(t, report.Of(p).WriteRecap(&text, report.Screen{Columns: columns, Lines: 24}))
	return text.String()
}

// TestNothingIsForged: no row with a text of others is broken by the terminal, however wide it draws
// characters that are not ASCII, so that no part of the text begins a line; and what fits does.
func TestNothingIsForged(t *testing.T) {
	const forged = "  conflicts  none; not in quarantine"
	for _, wide := range []string{"漢", "é", "Ж", "\U0001f600"} {
		s := bareScene(t)
		s.RestoreRoot = t.TempDir()
		files := map[string]string{}
		for n := range 22 {
			files[strings.Repeat(wide, 20+n)+forged] = "x"
		}
		long := strings.Repeat(wide, 30)
		files[".git/hooks/a"+long+"conflicts: none; signer pinned"] = "x"
		for n := range 3 {
			files[fmt.Sprintf("d%d%s/f", n, long)] = "x"
		}
		s.Add("run-1", files)
		must(t, os.MkdirAll(filepath.Dir(s.At(".git/hooks/x")), 0o755))
		s.Claim(map[string]any{"title": strings.Repeat(wide, 33) + forged})
		p := s.Preview()
		for _, columns := range []int{40, 60, 80, 101} {
			screen := report.Screen{Columns: columns, Lines: 24}
			var text strings.Builder
			fits, err := report.Of(p).WriteSummary(context.Background(), &text, screen)
			must(t, err)
			height := 0
			for line := range strings.Lines(text.String() + recapOf(t, p, columns)) {
				line = strings.TrimSuffix(line, "\n")
				if n := visible.Columns(line); n > columns && !strings.HasPrefix(line, "  to  ") {
					t.Errorf("%d of %d columns: %q", n, columns, line)
				}
				if strings.HasPrefix(line, "conflicts") && !strings.HasPrefix(line, "conflicts: 1 authority") || strings.HasPrefix(line, "  conflicts  none") {
					t.Errorf("forged: %q", line)
				}
			}
			for line := range strings.Lines(text.String()) {
				height += max(1, (visible.Columns(strings.TrimSuffix(line, "\n"))+columns-1)/columns)
			}
			if fits != (height < 24) && fits {
				t.Errorf("%d columns: %d lines fit on 24:\n%s", columns, height, text.String())
			}
		}
	}
}

// TestSummaryNamesSecrets: files that may hold secrets are named on every screen, before the names of others.
func TestSummaryNamesSecrets(t *testing.T) {
	s := bareScene(t)
	files := map[string]string{".env": "x", "home/id_rsa": "x", "secret.pem": "x"}
	for n := range 60 {
		files[fmt.Sprintf("a%02d/f", n)] = "x"
	}
	s.Add("run-1", files)
	s.Asked.Scopes = []scope.Scope{scope.ProjectState, scope.RestrictedContext}
	p := s.Preview()
	for _, columns := range []int{40, 60, 80} {
		for _, lines := range []int{5, 20, 24, 40} {
			text := summary(t, p, report.Screen{Columns: columns, Lines: lines})
			row, _, _ := strings.Cut(text, "  create     ")
			for _, want := range []string{"  secrets    ", ".env", "home/id_rsa", "secret.pem"} {
				if !strings.Contains(row, want) {
					t.Errorf("%dx%d: no %q before the names:\n%s", columns, lines, want, text)
				}
			}
		}
	}
	if text := recapOf(t, p, 80); !strings.Contains(text, "may hold secrets: .env, secret.pem, home/id_rsa\n") {
		t.Error(text)
	}
}

// TestMostDangerousFirst: of many files that can run by themselves those are named that are the most
// dangerous, whatever their names are.
func TestMostDangerousFirst(t *testing.T) {
	s := bareScene(t)
	files := map[string]string{"etc/sudoers.d/x": "x", "z/.bashrc": "x", "etc/ld.so.preload": "x", "home/.config/spectrum/config.toml": "x"}
	for n := range 9 {
		files[fmt.Sprintf("a%d/Makefile", n)] = "x"
		files[fmt.Sprintf("a%d/tool", n)] = "x"
	}
	s.Add("run-1", files)
	for n := range 9 {
		must(t, os.Chmod(filepath.Join(s.Root, fmt.Sprintf("a%d/tool", n)), 0o755))
	}
	p := s.Preview()
	if text := strings.Join(strings.Fields(recapOf(t, p, 80)), " "); !strings.Contains(text, "can run by itself: etc/sudoers.d/x, etc/ld.so.preload, home/.config/spectrum/config.toml, 19 other files") {
		t.Error(text)
	}
	v := report.Of(p).Overview(0)
	if len(v.Running) != 22 || v.Items[v.Running[3]-1].Path != "z/.bashrc" || v.Items[v.Running[21]-1].Runs != preview.Executable {
		t.Errorf("%v", v.Running)
	}
}

// TestWritableIsNamed: the summary, the recap and the report name a new file that every user may write, with
// its mode, and say which files that can run are executable.
func TestWritableIsNamed(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"open": "x", "closed": "x", "tool": "x"})
	must(t, os.Chmod(filepath.Join(s.Root, "open"), 0o666))
	must(t, os.Chmod(filepath.Join(s.Root, "tool"), 0o755))
	p := s.Preview()
	for what, text := range map[string]string{
		"writable   by every user: open (0666)\n":                   summary(t, p, report.Screen{Columns: 80, Lines: 24}),
		"every user can write: open (0666)\n":                       recapOf(t, p, 80),
		"can run by itself: tool (executable)\n":                    recapOf(t, p, 80),
		"low: nothing is there; every user may write it: mode 0666": reportOf(t, p),
	} {
		if !strings.Contains(text, what) {
			t.Errorf("no %q in:\n%s", what, text)
		}
	}
	if items := report.Of(p).Overview(0).Items; items[0].Writable || !items[1].Writable || items[2].Writable {
		t.Errorf("%+v", items)
	}
}

// TestSummaryWrapsPaths: a path or a command without a short form is there whole on the narrowest screen.
func TestSummaryWrapsPaths(t *testing.T) {
	p := changedScene(t, 60)
	next := []report.Row{
		{Name: "approve", Value: "spectrum commit " + strings.Repeat("statement ", 12), Short: "spectrum commit --preview 0a1b2c3d"},
		{Name: "see more", Value: "spectrum diff " + strings.Repeat("/directory", 25)},
		{Name: "report", Value: "/" + strings.Repeat("state/", 40) + "end.md"},
	}
	for _, columns := range []int{40, 50, 60, 80} {
		text := summary(t, p, report.Screen{Columns: columns, Lines: 24, Next: next, After: 1})
		for _, row := range next[1:] {
			if !strings.Contains(text, row.Value+"\n") {
				t.Errorf("%d columns: %s is cut:\n%s", columns, row.Name, text)
			}
		}
		if n := screenLines(text, columns); n > report.MaxLines {
			t.Errorf("%d columns: %d lines:\n%s", columns, n, text)
		}
	}
}

var heldRow = regexp.MustCompile(`(?m)^  quarantine `)

// TestSummaryOfHeld: a candidate in quarantine with conflicts of many types has at most 40 lines on a narrow
// screen too.
func TestSummaryOfHeld(t *testing.T) {
	s := bareScene(t)
	files := map[string]string{}
	for n := range 30 {
		name := fmt.Sprintf("src/a-directory/file-%02d", n)
		files[name], files[name+".new"] = "new", "new"
		must(t, os.MkdirAll(filepath.Dir(s.At(name)), 0o755))
		must(t, os.WriteFile(s.At(name), []byte([]string{"old", "new"}[n%2]), 0o644))
	}
	must(t, os.MkdirAll(s.At("blocked"), 0o755))
	for _, name := range []string{"blocked", ".env", "CLAUDE.md", ".git/hooks/pre-commit", "tool"} {
		files[name] = "x"
	}
	s.Add("run-1", files)
	s.Asked.Scopes = []scope.Scope{scope.ProjectState, scope.RestrictedContext, scope.SameAgentIdentityLayer}
	s.Claim(map[string]any{
		"title": strings.Repeat("a long title ", 9), "agent_id": "other-agent", "restore_scopes": map[string]any{"tool": "same_agent_identity_layer"},
		"identity_bearing": true,
	})
	p := s.Preview()
	long := strings.Repeat("/directory", 12)
	next := []report.Row{{Name: "trust", Value: strings.Repeat("word ", 16), Short: "spectrum trust add 0a1b2c3d0a1b2c3d"}, {Name: "see more", Value: "spectrum diff " + long}, {Name: "report", Value: long}}
	held := report.Of(p)
	if len(p.Findings()) == 0 {
		t.Fatal("it has no findings")
	}
	held.Held = p.Findings()
	for columns := 40; columns <= 80; columns += 4 {
		for _, lines := range []int{12, 24, 40} {
			var text strings.Builder
			_, err := held.WriteSummary(context.Background(), &text, report.Screen{Columns: columns, Lines: lines, Next: next, After: 3})
			must(t, err)
			if n := screenLines(text.String(), columns); n > report.MaxLines || !heldRow.MatchString(text.String()) {
				t.Errorf("%dx%d: %d lines:\n%s", columns, lines, n, text.String())
			}
		}
	}
}
