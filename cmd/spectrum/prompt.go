package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// prompt reads what an operator types at a terminal. The terminal is in raw mode meanwhile:
// its own line editing cuts a line at 4,095 characters without a word.
type prompt struct {
	text  string
	keys  *keys
	lines *term.Terminal
	ended bool // Ctrl-D was typed after a line
}

// asksFirst reports whether a command must ask before it does what cannot be undone: at a terminal. Where
// stderr is redirected, the question would not be seen, and that is an error.
func (a *app) asksFirst(cmd *cobra.Command) (bool, error) {
	switch {
	case a.json || !onTerminal(os.Stdin):
		return false, nil
	case !onTerminal(a.stderr):
		return false, usage(cmd, "stderr is redirected, so the question cannot be seen: run it without that, or with </dev/null to confirm")
	}
	return true, nil
}

// newPrompt returns a prompt with this text. One prompt serves for all answers to one question.
func (a *app) newPrompt(text string) *prompt {
	k := &keys{in: os.Stdin}
	return &prompt{text: text, keys: k, lines: term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{k, a.stderr}, text)}
}

// together is how soon after a line the next one arrives where both were pasted.
const together = 200 * time.Millisecond

// read reads one answer, without the white space at its ends: a line, or lines that arrive
// together, joined with a space, because pasted text may have line breaks. If any of them is a
// refusal, that is the answer, and so is an empty line at the beginning. What was typed before the
// question is discarded, since it was typed for something else; so is what arrives with a refusal, which
// would be input of the shell. At the end of the input (Ctrl-D) the answer is empty. Ctrl-C and the end of ctx are
// an error.
func (p *prompt) read(ctx context.Context) (string, error) {
	if p.ended {
		return "", nil
	}
	fd := int(os.Stdin.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(fd, before) }()
	p.keys.suspend = func() {
		_, _ = io.WriteString(os.Stderr, "\r\n")
		_ = term.Restore(fd, before)
		suspend(fd)
		_, _ = term.MakeRaw(fd)
		_, _ = p.lines.Write(nil) // draws the prompt and what was typed again
	}
	if p.ended = p.keys.discard(ctx); p.ended {
		_, _ = io.WriteString(os.Stderr, p.text+"\r\n")
		if errors.Is(p.keys.err, context.Canceled) {
			return "", p.keys.err
		}
		return "", nil
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	defer signal.Stop(resized)
	type answer struct {
		text string
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		text, err := p.readLines(ctx)
		done <- answer{text, err}
	}()
	for {
		if width, height, err := term.GetSize(fd); err == nil && width > 0 {
			_ = p.lines.SetSize(width, height)
		}
		select {
		case <-resized:
		case r := <-done:
			return r.text, r.err
		case <-ctx.Done():
			_, _ = io.WriteString(os.Stderr, "\r\n")
			return "", ctx.Err()
		}
	}
}

// readLines reads the lines of an answer.
func (p *prompt) readLines(ctx context.Context) (string, error) {
	var answer []string
	p.lines.SetPrompt(p.text)
	for {
		line, err := p.lines.ReadLine()
		if err != nil {
			_, _ = io.WriteString(p.lines, "\n")
		}
		p.ended = errors.Is(err, io.EOF)
		if err != nil && !p.ended {
			return "", err
		}
		if line = strings.TrimSpace(line); line != "" {
			answer = append(answer, line)
		}
		switch {
		case isRefusal(line) && (line != "" || len(answer) == 0):
			if !p.ended {
				p.ended = p.keys.discard(ctx)
			}
			return line, nil
		case p.ended || !p.keys.more(together):
			return strings.Join(answer, " "), nil
		}
		p.lines.SetPrompt("")
	}
}

// suspend stops the program, as Ctrl-Z does where the terminal is not in raw mode, until it is
// continued: with the programs of its job, where it is in the foreground. Nothing stops a program
// that no shell could continue, so it waits a moment only.
func suspend(fd int) {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	pid := os.Getpid()
	if job, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && job == unix.Getpgrp() {
		pid = 0
	}
	if unix.Kill(pid, unix.SIGTSTP) != nil {
		return
	}
	select {
	case <-continued:
	case <-time.After(stopTime):
	}
}

// stopTime is how soon a program stops after the signal.
const stopTime = time.Second

// keys are the typed bytes, for [term.Terminal], which takes at most 4,096 typed characters and any
// number of pasted ones: so runs of characters are marked as pasted here. The marks of bracketed
// paste are removed: they enclose all lines, and [term.Terminal] returns an error for such a line.
// keys passes on one line at a time, and so can report whether there is more.
type keys struct {
	in      *os.File
	suspend func() // at Ctrl-Z
	typed   []byte // that was not passed on
	err     error  // that ended the input
}

// The marks of a bracketed paste.
const (
	pasteBegins = "\x1b[200~"
	pasteEnds   = "\x1b[201~"
)

// splitTime is how soon the rest of a sequence follows its beginning.
const splitTime = 50 * time.Millisecond

const (
	interruptKey = 3  // Ctrl-C
	endKey       = 4  // Ctrl-D
	suspendKey   = 26 // Ctrl-Z
)

// sequences are the keys that some terminals send in another way than [term.Terminal]
// reads them: Home, End and the arrows.
var sequences = strings.NewReplacer(
	"\x1b[1~", "\x1b[H", "\x1b[7~", "\x1b[H", "\x1bOH", "\x1b[H", "\x1b[4~", "\x1b[F", "\x1b[8~", "\x1b[F", "\x1bOF", "\x1b[F",
	"\x1bOA", "\x1b[A", "\x1bOB", "\x1b[B", "\x1bOC", "\x1b[C", "\x1bOD", "\x1b[D",
	"\x00", string(rune(endKey)), // a Ctrl-D that was typed before the terminal was in raw mode
	"\r\n", "\r",
)

// Read returns [context.Canceled] for Ctrl-C, which [term.Terminal] takes for the end of the
// input.
func (k *keys) Read(p []byte) (int, error) {
	for len(k.typed) == 0 {
		if k.err != nil {
			return 0, k.err
		}
		k.fill()
	}
	line := k.typed
	if end := bytes.IndexAny(line, "\r\n"); end >= 0 {
		line = line[:end+1]
	}
	n := copy(p, line)
	k.typed = k.typed[n:]
	return n, nil
}

// quiet is how long nothing is typed before a question begins: a terminal passes on only 4,096 bytes of a
// long paste at a time, and the rest of it follows as soon as they were read.
const quiet = 100 * time.Millisecond

// discard takes away what was typed until now, up to a pause, and reports whether the input ended with
// it, or ctx.
func (k *keys) discard(ctx context.Context) (ended bool) {
	for ctx.Err() == nil && (len(k.typed) > 0 || k.err == nil && k.more(quiet)) {
		ended = ended || bytes.IndexByte(k.typed, endKey) >= 0
		k.typed = nil
	}
	if k.err == nil && ctx.Err() != nil {
		k.err = ctx.Err()
	}
	return ended || k.err != nil
}

// fill waits for what is typed next. There is none where only a paste begins or ends.
func (k *keys) fill() {
	var typed []byte
	for {
		var next [1024]byte
		n, err := k.in.Read(next[:])
		switch {
		case bytes.IndexByte(next[:n], interruptKey) >= 0:
			k.err = context.Canceled
			return
		case n == 0:
			k.err = err
		}
		some := bytes.ReplaceAll(next[:n], []byte{suspendKey}, nil)
		if len(some) < n {
			k.suspend()
		}
		typed = append(typed, some...)
		if n == 0 || !beginsMark(typed) || !k.ready(splitTime) {
			break
		}
	}
	text := strings.NewReplacer(pasteBegins, "", pasteEnds, "").Replace(string(typed))
	k.typed = marked([]byte(sequences.Replace(text)))
}

// beginsMark reports whether what was typed ends within a mark.
func beginsMark(typed []byte) bool {
	for n := 1; n < len(pasteBegins); n++ {
		if bytes.HasSuffix(typed, []byte(pasteBegins[:n])) || bytes.HasSuffix(typed, []byte(pasteEnds[:n])) {
			return true
		}
	}
	return false
}

// more reports whether more was typed, or is within this time.
func (k *keys) more(within time.Duration) bool {
	for end := time.Now().Add(within); len(k.typed) == 0 && k.err == nil; {
		if !k.ready(time.Until(end)) {
			return false
		}
		k.fill()
	}
	return true
}

// ready reports whether there is something to read within this time.
func (k *keys) ready(within time.Duration) bool {
	ready := []unix.PollFd{{Fd: int32(k.in.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(ready, max(0, int(within.Milliseconds())))
	return err == nil && n > 0
}

// marked is what was typed, with each run of characters in ASCII marked as pasted. A key
// that sends an escape sequence stays as it is.
func marked(typed []byte) []byte {
	if bytes.IndexByte(typed, 0x1b) >= 0 {
		return bytes.Clone(typed)
	}
	var out []byte
	for len(typed) > 0 {
		run := 0
		for run < len(typed) && typed[run] >= ' ' && typed[run] <= '~' {
			run++
		}
		if run > 0 {
			out = append(out, "\x1b[200~"...)
			out = append(append(out, typed[:run]...), "\x1b[201~"...)
		}
		if run < len(typed) {
			out = append(out, typed[run])
			run++
		}
		typed = typed[run:]
	}
	return out
}
