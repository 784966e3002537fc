package fusefs

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/spectrumfs/spectrum/internal/scarce"
)

// maxFindings bounds the findings that are remembered, and so logged: a source that was changed
// everywhere could otherwise fill memory and log block by block.
const maxFindings = 1000

// finding is the key by which equal failed reads are logged once.
type finding struct{ path, text string }

// findings reports each distinct failure of a source once.
type findings struct {
	log      *slog.Logger
	onTamper func(path string, err error)

	mu   sync.Mutex
	seen map[finding]struct{}

	scarce sync.Once // logs errors that are no findings

	away time.Time // when an [Unavailable] content was logged; under mu
}

func newFindings(log *slog.Logger, onTamper func(string, error)) *findings {
	return &findings{log: log, onTamper: onTamper, seen: make(map[finding]struct{})}
}

// report logs the failure and calls OnTamper, if it is a new one.
func (f *findings) report(path string, err error) {
	if scarce.Is(err) { // and not a fault of the source
		f.scarce.Do(func() { // it must not use up the findings
			f.log.Warn("cannot read a source file: the reader gets an I/O error, and later readers may too", "path", path, "error", err)
		})
		return
	}
	if away, is := errors.AsType[Unavailable](err); is && away.Unavailable() {
		f.reportAway(path, err)
		return
	}
	fresh, last := f.add(finding{path, err.Error()})
	if !fresh {
		return
	}
	f.log.Error("a source file differs from its signed hash: the reader gets an I/O error", "path", path, "error", err)
	if last {
		f.log.Error("too many findings: no more are logged", "limit", maxFindings)
	}
	if f.onTamper != nil {
		f.onTamper(path, err)
	}
}

// awayEvery is how often a content that cannot be had is logged.
const awayEvery = time.Minute

// reportAway logs that a content cannot be had: every read of it fails as long as that lasts.
func (f *findings) reportAway(path string, err error) {
	f.mu.Lock()
	isFirst := f.away.IsZero() || time.Since(f.away) >= awayEvery
	if isFirst {
		f.away = time.Now()
	}
	f.mu.Unlock()
	if isFirst {
		f.log.Warn("a source file cannot be had now: its readers get an I/O error until it can", "path", path, "error", err)
	}
}

// add reports whether the finding is new, and whether it is the last to be kept.
func (f *findings) add(x finding) (fresh, last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.seen[x]; ok || len(f.seen) >= maxFindings {
		return false, false
	}
	f.seen[x] = struct{}{}
	return true, len(f.seen) == maxFindings
}
