package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/terminal"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// A sitting is a commit that asks for a statement at a terminal.
type sitting struct {
	*exec.Cmd
	t    *testing.T
	tty  *terminal.Terminal
	root string

	mu   sync.Mutex
	said strings.Builder
	all  chan struct{} // closed when nothing more is to come
}

// sit starts a commit of a run with these files.
func sit(t *testing.T, files map[string]string) *sitting { return sitAfter(t, files, "") }

// sitAfter is sit after a text was typed.
func sitAfter(t *testing.T, files map[string]string, early string) *sitting {
	t.Helper()
	s := &sitting{t: t, tty: terminal.Open(t), root: t.TempDir(), all: make(chan struct{})}
	run := bundletest.New(t).Run("run-1", files)
	s.Cmd = command(t, "commit", "--restore-root", s.root, run.Dir)
	s.Stdin, s.Stderr, s.Stdout = s.tty.Program, s.tty.Program, nil
	s.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a job of a shell, which can be stopped
	if _, err := s.tty.User.WriteString(early); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.all)
		buf := make([]byte, 4096)
		for {
			n, err := s.tty.User.Read(buf)
			s.mu.Lock()
			s.said.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *sitting) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

// answer waits until the statement was asked for so many times, and types.
func (s *sitting) answer(asked int, text string) {
	s.t.Helper()
	for begin := time.Now(); strings.Count(s.heard(), "statement: ") < asked; time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > harness.Patience {
			s.t.Fatalf("not asked %d times:\n%s", asked, s.heard())
		}
	}
	for len(text) > 0 { // a terminal holds no more than 4,096 unread bytes
		n := min(len(text), 1000)
		if _, err := s.tty.User.WriteString(text[:n]); err != nil {
			s.t.Fatal(err)
		}
		text = text[n:]
		time.Sleep(5 * time.Millisecond)
	}
}

// ends waits for the end and for all that was said: the exit status, whether the candidate is
// held, and whether the terminal is as it was.
func (s *sitting) ends(status int, held bool) {
	s.t.Helper()
	_ = s.Wait()
	mode, err := unix.IoctlGetTermios(int(s.tty.Program.Fd()), unix.TCGETS)
	if err != nil || mode.Lflag&unix.ICANON == 0 || mode.Lflag&unix.ECHO == 0 {
		s.t.Errorf("the terminal is left in raw mode: %+v, %v", mode, err)
	}
	_ = s.tty.Program.Close()
	<-s.all
	if got := s.ProcessState.ExitCode(); got != status {
		s.t.Errorf("exit status %d, want %d:\n%s", got, status, s.heard())
	}
	if got := must(s.t, "quarantine", "list"); (got != "") != held {
		s.t.Errorf("held: %q, want %t", got, held)
	}
	names, err := os.ReadDir(s.root)
	if err != nil || (len(names) > 0) != (status == 0) {
		s.t.Errorf("restore root: %v, %v", names, err)
	}
}

// TestPromptRejects: declining at the prompt writes nothing and marks nothing.
func TestPromptRejects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		typed  string
		status int
	}{
		"Enter": {"\r", statusApproval}, "white space": {"  \r", statusApproval}, "no": {"no\r", statusApproval}, "No.": {" No. \r", statusApproval}, "reject": {"reject\r", statusApproval},
		"q": {"q\r", statusApproval}, "quit": {"quit\r", statusApproval}, "Exit": {"Exit\r", statusApproval}, "fg": {"fg\r", statusApproval}, "vague lines, then exit": {"sure\rok\rexit\r", statusApproval},
		"Ctrl-D": {"\x04", statusApproval}, "Ctrl-C": {"\x03", statusInterrupted}, "Ctrl-C in a line": {"Approved: comm\x03", statusInterrupted},
		"a vague line, then no": {"sure\rno\r", statusApproval}, "two vague lines, then Ctrl-D": {"sure\rok\r\x04", statusApproval},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sit(t, map[string]string{"a": "alpha"})
			s.answer(1, c.typed)
			s.ends(c.status, false)
		})
	}
}

// TestPromptTypedBefore: what was typed before the question was on the screen is not an answer to it.
func TestPromptTypedBefore(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]string{"with the end": preview.Exactly + "\r\x04", "without Enter": preview.Exactly, "marked": "\x1b[200~" + preview.Exactly + "\r\x1b[201~\x04", "no": "no\r"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sitAfter(t, map[string]string{"a": "alpha"}, early)
			if name == "no" {
				s.answer(1, preview.Exactly+"\r")
				s.ends(statusOK, false)
				return
			}
			s.answer(1, "\r")
			s.ends(statusApproval, false)
		})
	}
}

// TestPromptLongPaste: a paste that is longer than what a terminal holds, and that began before the
// question, is not an answer to it.
func TestPromptLongPaste(t *testing.T) {
	t.Parallel()
	for name, paste := range map[string]string{"lines": strings.Repeat("\r", 20000), "words": strings.Repeat("sure ", 4000) + "\r"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sit(t, map[string]string{"a": "alpha"})
			if _, err := s.tty.User.WriteString(paste + preview.Exactly + "\r"); err != nil {
				t.Fatal(err)
			}
			s.answer(1, "\r")
			s.ends(statusApproval, false)
		})
	}
}

// TestPromptSuspend: Ctrl-Z stops the program with the terminal as it was, and what was typed before
// is still there when it goes on.
func TestPromptSuspend(t *testing.T) {
	t.Parallel()
	s := sit(t, map[string]string{"a": "alpha"})
	s.answer(1, "Approved: commit \x1a")
	var status unix.WaitStatus
	if pid, err := unix.Wait4(s.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || pid != s.Process.Pid || !status.Stopped() || status.StopSignal() != unix.SIGTSTP {
		t.Fatalf("%d, %#x, %v:\n%s", pid, status, err, s.heard())
	}
	if mode, err := unix.IoctlGetTermios(int(s.tty.Program.Fd()), unix.TCGETS); err != nil || mode.Lflag&unix.ICANON == 0 || mode.Lflag&unix.ECHO == 0 {
		t.Errorf("the terminal is left in raw mode: %+v, %v", mode, err)
	}
	if err := s.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.answer(2, strings.TrimPrefix(preview.Exactly, "Approved: commit ")+"\r")
	s.ends(statusOK, false)
}

// TestPromptSlips: a slip is explained and asked for again; one prompt with up to three
// lines is one approval, and only a third vague line is a vague approval.
func TestPromptSlips(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines  []string
		said   string
		status int
	}{
		"right":            {[]string{preview.Exactly}, "", statusOK},
		"white space":      {[]string{"  " + preview.Exactly + " \t"}, "", statusOK},
		"corrected":        {[]string{"Approved: comitt\x7f\x7f\x7f" + "mit the restore preview exactly as proposed!\x7f."}, "", statusOK},
		"no full stop":     {[]string{strings.TrimSuffix(preview.Exactly, "."), preview.Exactly}, "the full stop is missing", statusOK},
		"case":             {[]string{strings.ToLower(preview.Exactly), preview.Exactly}, "upper and lower case", statusOK},
		"form, twice":      {[]string{strings.ToLower(preview.Exactly), "  " + strings.ToUpper(preview.Exactly), preview.Exactly}, "the next line is the last one", statusOK},
		"form, thrice":     {[]string{strings.ToLower(preview.Exactly), strings.ReplaceAll(strings.TrimSuffix(preview.Exactly, "."), " ", "  "), "approved: commit the restore preview exactly as proposed"}, "not approved: nothing was written", statusApproval},
		"vague, then form": {[]string{"sure", "ok", strings.ToLower(preview.Exactly)}, "not approved: nothing was written", statusApproval},
		"quotes":           {[]string{"'" + preview.Exactly + "'", preview.Exactly}, "quotes", statusOK},
		"curly quotes":     {[]string{"“" + preview.Exactly + "”", preview.Exactly}, "quotes", statusOK},
		"two, then right":  {[]string{"sure", "approved", preview.Exactly}, "one more line", statusOK},
		"three vague":      {[]string{"sure", "approved", "ok"}, "the candidate is in quarantine now", statusApproval},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sit(t, map[string]string{"a": "alpha"})
			for n, line := range c.lines {
				s.answer(n+1, line+"\r")
			}
			s.ends(c.status, name == "three vague")
			if !strings.Contains(s.heard(), c.said) {
				t.Errorf("no %q in\n%s", c.said, s.heard())
			}
		})
	}
}

// TestPromptPaste: lines that arrive together are one answer, so a statement that was pasted
// with line breaks is one statement, and none of it is left out.
func TestPromptPaste(t *testing.T) {
	t.Parallel()
	broken := "Approved: commit the restore\r  preview exactly as\r\tproposed.\r"
	for name, c := range map[string]struct {
		answers []string
		status  int
		files   string // that are restored
	}{
		"three lines":             {[]string{broken}, statusOK, "a b"},
		"a line feed after each":  {[]string{strings.ReplaceAll(broken, "\r", "\r\n")}, statusOK, "a b"},
		"no Enter at the end":     {[]string{strings.TrimSuffix(broken, "\r"), "\r"}, statusOK, "a b"},
		"empty lines first":       {[]string{"\r\r" + preview.Exactly + "\r\r"}, statusApproval, ""},
		"empty lines after it":    {[]string{preview.Exactly + "\r\r\r"}, statusOK, "a b"},
		"a sentence on each line": {[]string{"Approved: restore project state only.\rDo not restore items R-002.\rAcknowledge C-001.\r"}, statusOK, "a"},
		"more after a statement":  {[]string{preview.Exactly + "\rls\r", preview.Exactly + "\r"}, statusOK, "a b"},
		"five vague lines, once":  {[]string{"a\rb\rc\rd\re\r", preview.Exactly + "\r"}, statusOK, "a b"},
		"no among the lines":      {[]string{"Approved: restore\rno\r" + preview.Exactly + "\r"}, statusApproval, ""},
		"the end after it":        {[]string{preview.Exactly + "\r\x04"}, statusOK, "a b"},
		"empty lines alone":       {[]string{"\r\r\r"}, statusApproval, ""},

		"marked":                         {[]string{"\x1b[200~" + preview.Exactly + "\x1b[201~\r"}, statusOK, "a b"},
		"marked, with its Enter":         {[]string{"\x1b[200~" + preview.Exactly + "\r\x1b[201~"}, statusOK, "a b"},
		"marked, with a line feed":       {[]string{"\x1b[200~" + preview.Exactly + "\n\x1b[201~"}, statusOK, "a b"},
		"marked, three lines":            {[]string{"\x1b[200~" + broken + "\x1b[201~"}, statusOK, "a b"},
		"marked, and another answer":     {[]string{"\x1b[200~sure\rok\r\x1b[201~", "\x1b[200~" + preview.Exactly + "\r\x1b[201~"}, statusOK, "a b"},
		"marked, no Enter at the end":    {[]string{"\x1b[200~" + strings.TrimSuffix(broken, "\r") + "\x1b[201~", "\r"}, statusOK, "a b"},
		"marked, no end":                 {[]string{"\x1b[200~" + broken}, statusOK, "a b"},
		"marked, long":                   {[]string{"\x1b[200~" + strings.Repeat("sure ", 2000) + "\r\x1b[201~", preview.Exactly + "\r"}, statusOK, "a b"},
		"marked, no among the lines":     {[]string{"\x1b[200~Approved: restore\rno\r\x1b[201~"}, statusApproval, ""},
		"marked, nothing but line feeds": {[]string{"\x1b[200~\n\n\x1b[201~"}, statusApproval, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sit(t, map[string]string{"a": "alpha", "b": "beta"})
			for n, text := range c.answers {
				if strings.Trim(text, "\r") == "" && n > 0 { // Enter, some time after the paste
					time.Sleep(2 * together)
					n--
				}
				s.answer(n+1, text)
			}
			s.ends(c.status, false)
			names, _ := filepath.Glob(filepath.Join(s.root, "?"))
			for n := range names {
				names[n] = filepath.Base(names[n])
			}
			if got := strings.Join(names, " "); got != c.files {
				t.Errorf("restored %q, want %q", got, c.files)
			}
		})
	}
}

// TestPromptUnfit: an explicit statement that does not fit what was shown is explained and
// asked for again, and holds no candidate.
func TestPromptUnfit(t *testing.T) {
	t.Parallel()
	const open, wrong = "Approved: restore items R-001 only.", "Approved: restore items R-001 and R-009 only."
	for name, c := range map[string]struct {
		lines  []string
		said   string
		status int
	}{
		"a conflict is left open": {[]string{open, open + " Acknowledge C-001."}, `end the statement with "Acknowledge C-001."`, statusOK},
		"no such item":            {[]string{wrong, open + " Acknowledge C-001."}, "it has no item R-009", statusOK},
		"no such scope":           {[]string{"Approved: restore decisions only.", preview.Exactly}, "nothing in scope decisions is proposed", statusOK},
		"three times":             {[]string{open, wrong, open}, "the next line is the last one", statusApproval},
		"a vague line at the end": {[]string{open, wrong, "ok"}, "not approved: nothing was written", statusApproval},
		"vague lines before":      {[]string{"sure", "ok", open}, "conflicts are not decided", statusApproval},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sit(t, map[string]string{"a": "alpha", "b": "beta"})
			for n, line := range c.lines {
				s.answer(n+1, line+"\r")
			}
			s.ends(c.status, false)
			if !strings.Contains(strings.ReplaceAll(s.heard(), "\r\n", "\n"), c.said) {
				t.Errorf("no %q in\n%s", c.said, s.heard())
			}
		})
	}
}

// TestPromptKeys: the keys that terminals send for the ends of a line and for the arrows.
func TestPromptKeys(t *testing.T) {
	t.Parallel()
	for home, end := range map[string]string{"\x1b[H": "\x1b[F", "\x1b[1~": "\x1b[4~", "\x1b[7~": "\x1b[8~", "\x1bOH": "\x1bOF", "\x01": "\x05"} {
		for left, right := range map[string]string{"\x1b[D": "\x1b[C", "\x1bOD": "\x1bOC"} {
			s := sit(t, map[string]string{"a": "alpha"})
			inner := strings.TrimSuffix(strings.TrimPrefix(preview.Exactly, "Ap"), "d.")
			for _, key := range []string{inner, home, "A", "p", end, "d", left, right, ".", "\r"} {
				s.answer(1, key)
				time.Sleep(5 * time.Millisecond) // a key is an event of its own
			}
			s.ends(statusOK, false)
		}
	}
}

// TestPromptLong: a statement may be longer than the line that a terminal edits.
func TestPromptLong(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	var ids []string
	for n := range 1500 {
		name := string(rune('a'+n/100%26)) + "/" + string(rune('a'+n/10%10)) + string(rune('a'+n%10))
		files[name] = "x"
	}
	for n := 1; n <= len(files); n += 2 {
		ids = append(ids, itemText(n))
	}
	s := sit(t, files)
	text := "Approved: restore items " + strings.Join(ids[:len(ids)-1], ", ") + ", and " + ids[len(ids)-1] + " only. Acknowledge C-001."
	if len(text) < 5000 {
		t.Fatalf("only %d characters", len(text))
	}
	s.answer(1, text+"\r")
	s.ends(statusOK, false)
	if names, _ := filepath.Glob(filepath.Join(s.root, "*", "*")); len(names) != len(ids) {
		t.Errorf("%d files, want %d", len(names), len(ids))
	}
}

func itemText(n int) string {
	digits := []byte{'R', '-', byte('0' + n/100%10), byte('0' + n/10%10), byte('0' + n%10)}
	if n >= 1000 {
		return "R-1" + string(digits[2:])
	}
	return string(digits)
}
