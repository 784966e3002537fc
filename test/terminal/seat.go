package terminal

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"
)

// A Seat is a terminal with a screen, which answers what a program asks of it.
type Seat struct {
	*Terminal

	mu     sync.Mutex
	screen *vt.Emulator
	raw    strings.Builder
	all    chan struct{} // closed when nothing more is to come
}

// Sit makes a terminal with a screen of this size, which is closed with the test.
func Sit(t testing.TB, columns, lines int) *Seat {
	t.Helper()
	s := &Seat{Terminal: Open(t), screen: vt.NewEmulator(columns, lines), all: make(chan struct{})}
	s.setSize(t, columns, lines)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = io.Copy(s.User, s.screen)
	}()
	go s.listen()
	t.Cleanup(func() {
		_ = s.Program.Close()
		<-s.all
		if answers, ok := s.screen.InputPipe().(io.Closer); ok { // to close the screen itself is a race
			_ = answers.Close()
			<-answered
		}
	})
	return s
}

func (s *Seat) listen() {
	defer close(s.all)
	buf := make([]byte, 4096)
	for {
		n, err := s.User.Read(buf)
		s.mu.Lock()
		s.raw.Write(buf[:n])
		_, _ = s.screen.Write(buf[:n])
		s.mu.Unlock()
		if err != nil { // the last one has closed the other end
			return
		}
	}
}

func (s *Seat) setSize(t testing.TB, columns, lines int) {
	t.Helper()
	err := unix.IoctlSetWinsize(int(s.User.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(lines), Col: uint16(columns)})
	must(t, err)
}

// SetSize makes the screen as large as this. The program gets no signal.
func (s *Seat) SetSize(t testing.TB, columns, lines int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.screen.Resize(columns, lines)
	s.setSize(t, columns, lines)
}

// Text is what is on the screen.
func (s *Seat) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screen.String()
}

// Raw is all that was written to the terminal.
func (s *Seat) Raw() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.String()
}

// IsFull reports whether a program has the whole screen for itself.
func (s *Seat) IsFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screen.IsAltScreen()
}

// IsBare reports whether the cursor is hidden.
func (s *Seat) IsBare() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screen.CursorHidden()
}

// IsRaw reports whether the terminal passes on what is typed as it is, without an echo.
func (s *Seat) IsRaw(t testing.TB) bool {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(s.Program.Fd()), unix.TCGETS)
	must(t, err)
	return mode.Lflag&unix.ICANON == 0 || mode.Lflag&unix.ECHO == 0
}

// Type types a text.
func (s *Seat) Type(t testing.TB, text string) {
	t.Helper()
	_, err := s.User.WriteString(text)
	must(t, err)
}

// patience is how long a screen is waited for. Only a test that fails takes so long.
const patience = 10 * time.Minute

// Await waits until all of these texts are on the screen.
func (s *Seat) Await(t testing.TB, texts ...string) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		shown, missing := s.Text(), ""
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		if time.Since(begin) > patience {
			t.Fatalf("%q is not on the screen:\n%s", missing, shown)
		}
	}
}

// Hang closes the program's end here, and returns all that was written once no process has that
// end open any more.
func (s *Seat) Hang(t testing.TB) string {
	t.Helper()
	if err := s.Program.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		t.Fatal(err)
	}
	<-s.all
	return s.Raw()
}
