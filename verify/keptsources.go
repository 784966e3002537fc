package verify

import (
	"sync"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Sources keeps the sources of outputs open from the moment at which they were hashed until they
// are copied, as many as the limit of open files permits. A source that is still the file at its
// name then need not be opened again; any other one is opened by its name, as if it had not been
// kept. The zero Sources is ready, and closed at the end. It is safe for concurrent use.
type Sources struct {
	mu   sync.Mutex
	kept map[*output]keptSource
	used []*pathsafe.File // to be closed
}

// keptSource is an open source, with its state when it was hashed.
type keptSource struct {
	file *pathsafe.File
	id   pathsafe.ID
	size int64
}

// closeAtOnce is how many sources are closed together after use.
const closeAtOnce = 128

// keep takes ownership of the file that an output was read from, unless it returns false. Searching
// for holes moves the offset from which a copy starts, so a file with holes is not kept.
func (s *Sources) keep(of *output, f *pathsafe.File, st pathsafe.Stat) bool {
	if s == nil || st.Size > st.Allocated || !f.Keep() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[*output]keptSource{}
	}
	s.kept[of] = keptSource{f, st.ID, st.Size}
	return true
}

// take returns the kept source of an output, once, if a new lookup of its name leads to the same
// file and its size is unchanged, and nil otherwise.
func (s *Sources) take(o Output, near *pathsafe.Opener) *pathsafe.File {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	k, isKept := s.kept[o.output]
	delete(s.kept, o.output)
	s.mu.Unlock()
	if !isKept {
		return nil
	}
	st, err := o.LstatNear(near)
	if err != nil || st.ID != k.id || st.Size != k.size {
		_ = k.file.Close()
		return nil
	}
	return k.file.Lend(func() { s.release(k.file) })
}

// release closes a source after use, together with others.
func (s *Sources) release(f *pathsafe.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used = append(s.used, f); len(s.used) >= closeAtOnce {
		_ = pathsafe.CloseAll(s.used) // nothing was written to them
		s.used = nil
	}
}

// Close closes all sources. None of them may be in use.
func (s *Sources) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kept {
		s.used = append(s.used, k.file)
	}
	_ = pathsafe.CloseAll(s.used)
	s.kept, s.used = nil, nil
}
