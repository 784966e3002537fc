package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/verify"
	"golang.org/x/term"
)

// progressDelay is how long work may take without a bar: a bar that disappears at once would only
// flicker.
const progressDelay = time.Second

// bar shows the progress of long work, phase by phase, in bytes and with the remaining time if the
// total is known. A nil bar shows nothing. Several goroutines may use it at once.
type bar struct {
	mu    sync.Mutex
	gate  *gate // nil without a bar, or after its end
	show  *time.Timer
	phase string
	of    *progressbar.ProgressBar // the phase
	left  int64                    // bytes of it that are left, where that is known
}

// gate passes the bar to the terminal only while it is open.
type gate struct {
	terminal io.Writer
	open     bool
}

func (g *gate) Write(p []byte) (int, error) {
	if !g.open {
		return len(p), nil
	}
	if _, err := io.WriteString(g.terminal, fitting(string(p), columnsOf(g.terminal))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// fitting is what is drawn without the characters for which a line has no room: a terminal
// may be narrower than it was when the phase began.
func fitting(drawn string, columns int) string {
	var out strings.Builder
	used, escape := 0, false
	for _, r := range drawn {
		switch {
		case r == '\r' || r == '\n':
			used = 0
		case r == '\x1b':
			escape = true
		case escape:
			escape = r == '[' || r >= '0' && r <= '9' || r == ';'
		default:
			if used++; used >= columns {
				continue
			}
		}
		out.WriteRune(r)
	}
	return out.String()
}

// columnsOf is how wide a terminal is.
func columnsOf(terminal any) int {
	if f, ok := terminal.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// newBar begins a bar on stderr, if that is a terminal and the flags allow it. Before the first
// phase it has no bytes.
func (a *app) newBar(what string) *bar {
	if a.quiet || a.noProgress || a.json || !onTerminal(a.stderr) {
		return &bar{}
	}
	b := &bar{gate: &gate{terminal: a.stderr, open: a.progressDelay <= 0}}
	b.begin(what, 0, 0)
	b.phase = "" // any phase may follow
	b.show = time.AfterFunc(a.progressDelay, b.appear)
	a.shown = b
	return b
}

// appear shows the bar as it is by now.
func (b *bar) appear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gate != nil && !b.gate.open {
		b.gate.open = true
		_ = b.of.RenderBlank()
	}
}

// unknown is an unknown number of bytes. Work without bytes has 0.
const unknown = -1

// begin begins a phase with its numbers of files, if known, and bytes. If the same phase begins
// again, the number of repetitions, and so the rest, is unknown.
func (b *bar) begin(phase string, files int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enter(phase, files, bytes)
}

func (b *bar) enter(phase string, files int, bytes int64) {
	if b.gate == nil || phase == b.phase && b.left <= 0 {
		return
	}
	if phase == b.phase {
		files, bytes = 0, unknown
	}
	if b.of != nil {
		_ = b.of.Clear()
	}
	b.phase, b.left = phase, bytes
	number := ""
	if files > 0 {
		number = " " + numberOf(files, "file")
	}
	b.of = b.gate.newPhase(phase, number, bytes)
	_ = b.of.RenderBlank()
}

// newPhase begins a phase. A number that does not fit is left out: a part of it would be another
// number.
func (g *gate) newPhase(what, number string, bytes int64) *progressbar.ProgressBar {
	room := roomFor(g.terminal)
	if words := []rune(what); len(words) > room.words {
		what = string(words[:room.words-1]) + "…"
	} else if len(words)+len(number) <= room.words {
		what += number
	}
	options := []progressbar.Option{
		progressbar.OptionSetWriter(g),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(room.bar),
		progressbar.OptionUseIECUnits(true), // as in messages
		progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetSpinnerChangeInterval(0), // else a goroutine draws too, and reads without the lock
		progressbar.OptionUseANSICodes(os.Getenv("NO_COLOR") == ""),
	}
	if bytes == 0 { // nothing moves, so no time and no number would be true for long
		return progressbar.NewOptions64(unknown, append(options, progressbar.OptionSetElapsedTime(false))...)
	}
	if room.count {
		options = append(options, progressbar.OptionShowBytes(true), progressbar.OptionShowCount(), progressbar.OptionShowTotalBytes(true))
	}
	return progressbar.NewOptions64(bytes, append(options,
		progressbar.OptionSetPredictTime(room.time),
		progressbar.OptionSetElapsedTime(room.time),
	)...)
}

// barRoom is how a bar fits into a line. One that is wider than the terminal would leave a
// line behind each time that it is drawn.
type barRoom struct {
	words int  // characters of what is done
	bar   int  // characters of the bar itself
	count bool // with count and rate
	time  bool // with the time
}

func roomFor(terminal any) barRoom {
	columns := columnsOf(terminal)
	const count = 40 // characters of percentage, count and rate
	switch {
	case columns >= 80: // the whole line has less
		return barRoom{words: 32, bar: 12, count: true, time: true}
	case columns >= count+16:
		return barRoom{words: columns - count - 4, bar: 4, count: true}
	}
	return barRoom{words: max(4, columns-16), bar: 4}
}

// finishing is the phase after the last byte: what it does has no bytes.
const finishing = "finishing: syncing and checking"

func (b *bar) add(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gate == nil {
		return
	}
	if b.left > 0 && n >= b.left {
		b.enter(finishing, 0, 0)
		return
	}
	if b.left > 0 {
		b.left -= n
	}
	_ = b.of.Add64(n)
}

// clear removes the bar before a line is printed. The next update draws it again.
func (b *bar) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gate != nil {
		_ = b.of.Clear()
	}
}

// done removes the bar; further calls do nothing.
func (b *bar) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gate == nil {
		return
	}
	b.show.Stop()
	_ = b.of.Clear()
	b.gate = nil
}

// bar is the bar that is shown, or one that shows nothing.
func (a *app) bar() *bar {
	if a.shown == nil {
		return &bar{}
	}
	return a.shown
}

// watchStore shows the progress of work on snapshots in the bar.
func (a *app) watchStore(store *snapshot.Store) {
	store.Watch(snapshot.Watch{
		Begin: func(work string, files int, bytes int64) { a.bar().begin(work, files, bytes) },
		Waits: func(path string) {
			a.tell("spectrum: waiting for %s: another process holds a lease on it, which it loses in %s at the latest; Ctrl-C ends this", words.Path(path), snapshot.LeasePatience())
		},
		Read: func(bytes int64) { a.bar().add(bytes) },
	})
}

// verifying shows the progress of the verification of so many runs. Without a bar the total is not
// computed.
func (b *bar) verifying(runs int) verify.Watch {
	if b.gate == nil {
		return verify.Watch{}
	}
	run := 0
	return verify.Watch{Hashed: b.add, Listed: func(files int, bytes int64) {
		run++
		phase := "verifying"
		if runs > 1 {
			phase = fmt.Sprintf("run %d of %d:", run, runs)
		}
		b.begin(phase, files, bytes)
	}}
}
