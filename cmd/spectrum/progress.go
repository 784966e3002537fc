package main

import (
	"fmt"
	"os"
	"sync"

	"github.com/schollz/progressbar/v3"
)

// bar is a progress bar in bytes, or nothing where none is wanted.
type bar struct {
	mu  sync.Mutex
	bar *progressbar.ProgressBar
}

// newBar begins a bar on stderr, if that is a terminal. total is -1 when it is
// not known.
func (a *app) newBar(what string, total int64) *bar {
	if a.quiet || a.noProgress || !onTerminal(a.stderr) {
		return &bar{}
	}
	return &bar{bar: progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true),
		progressbar.OptionShowCount(),
		progressbar.OptionShowTotalBytes(true),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100_000_000),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetSpinnerChangeInterval(0), // else a goroutine draws too, and reads without the lock
		progressbar.OptionUseANSICodes(os.Getenv("NO_COLOR") == ""),
	)}
}

func (b *bar) set(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar != nil {
		_ = b.bar.Set64(n)
	}
}

func (b *bar) add(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar != nil {
		_ = b.bar.Add64(n)
	}
}

// done removes the bar; further calls do nothing.
func (b *bar) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar != nil {
		_ = b.bar.Clear()
		_ = b.bar.Exit()
		b.bar = nil
	}
}

// bytesText says a number of bytes for people.
func bytesText(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}
