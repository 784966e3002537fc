package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// prompt reads lines that an operator types at a terminal. The terminal is in raw mode
// meanwhile: its own line editing cuts a line at 4,095 characters without a word.
type prompt struct {
	keys  *keys
	lines *term.Terminal
}

// newPrompt returns a prompt that asks with this text. Lines that were typed ahead stay in
// it, so one prompt serves for all lines of one question.
func (a *app) newPrompt(text string) *prompt {
	k := &keys{in: os.Stdin}
	return &prompt{k, term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{k, a.stderr}, text)}
}

// readLine reads a line without the white space at its ends. At the end of the input
// (Ctrl-D) it is empty. Ctrl-C and the end of ctx are an error.
func (p *prompt) readLine(ctx context.Context) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(fd, before) }()
	if width, height, err := term.GetSize(fd); err == nil && width > 0 {
		_ = p.lines.SetSize(width, height)
	}
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		line, err := p.lines.ReadLine()
		done <- read{line, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			_, _ = io.WriteString(p.lines, "\n")
		}
		if errors.Is(r.err, io.EOF) {
			return "", nil
		}
		return strings.TrimSpace(r.line), r.err
	case <-ctx.Done():
		_, _ = io.WriteString(os.Stderr, "\r\n")
		return "", ctx.Err()
	}
}

// keys is what is typed, for [term.Terminal], which takes at most 4,096 characters of what is
// typed and any number of what is pasted: so runs of characters are marked as pasted here.
// (The terminal itself is not asked to mark what it pastes.)
type keys struct {
	in  io.Reader
	out []byte
}

const (
	interruptKey = 3 // Ctrl-C
	endKey       = 4 // Ctrl-D
)

// Read returns [context.Canceled] for Ctrl-C, which [term.Terminal] takes for the end of the
// input.
func (k *keys) Read(p []byte) (int, error) {
	for len(k.out) == 0 {
		var typed [1024]byte
		n, err := k.in.Read(typed[:])
		switch {
		case bytes.IndexByte(typed[:n], interruptKey) >= 0:
			return 0, context.Canceled
		case n == 0:
			return 0, err
		}
		// A Ctrl-D that was typed before the terminal was in raw mode arrives as a NUL.
		k.out = marked(bytes.ReplaceAll(typed[:n], []byte{0}, []byte{endKey}))
	}
	n := copy(p, k.out)
	k.out = k.out[n:]
	return n, nil
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
