// Package terminal is a terminal of a test's own, and what a person who sits at it sees.
package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A Terminal is a terminal of which the test is both ends.
type Terminal struct {
	Program *os.File // the end of the program
	User    *os.File // the end of who sits at it
}

// Open makes a terminal of 80 columns, which is closed with the test.
func Open(t testing.TB) *Terminal {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = user.Close() })
	must(t, unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0))
	must(t, unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: Columns}))
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	must(t, err)
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = program.Close() })
	return &Terminal{program, user}
}

// Columns is how wide it is, unless it was resized.
const Columns = 80

// Resize makes it as wide as this.
func (t *Terminal) Resize(tb testing.TB, columns int) {
	tb.Helper()
	must(tb, unix.IoctlSetWinsize(int(t.User.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)}))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Listen returns a function that closes the program's end here, and returns all that was written
// when no process has that end open any more.
func (t *Terminal) Listen() func() string {
	var said bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&said, t.User) // ends with an error when the last one closes the other end
	}()
	return func() string {
		_ = t.Program.Close()
		<-done
		return said.String()
	}
}

// Screen is what stands on a screen of any height after all of this was written to it,
// line by line, as far as carriage returns, line feeds and clearing a line go.
func Screen(written string) []string { return ScreenOf(written, Columns) }

// ScreenOf is [Screen] for a terminal of another width.
func ScreenOf(written string, columns int) []string {
	lines, column := [][]rune{nil}, 0
	written = strings.NewReplacer("\x1b[2K", "\x00", "\x1b[0K", "").Replace(written)
	for _, r := range written {
		last := len(lines) - 1
		switch r {
		case '\x00':
			lines[last] = nil
		case '\r':
			column = 0
		case '\n':
			lines, column = append(lines, nil), 0
		default:
			if column == columns {
				lines, column = append(lines, nil), 0
				last++
			}
			for len(lines[last]) <= column {
				lines[last] = append(lines[last], ' ')
			}
			lines[last][column] = r
			column++
		}
	}
	var shown []string
	for _, line := range lines {
		shown = append(shown, strings.TrimRight(string(line), " "))
	}
	return shown
}
