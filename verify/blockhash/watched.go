package blockhash

import "io"

// Watched returns r with a callback for the number of further bytes read. done may be nil.
func Watched(r io.ReaderAt, done func(bytes int64)) io.ReaderAt {
	if done == nil {
		return r
	}
	return watched{r, done}
}

type watched struct {
	io.ReaderAt
	done func(int64)
}

// ReadAt reads and reports the number of bytes.
func (w watched) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.ReaderAt.ReadAt(p, off)
	w.done(int64(n))
	return n, err
}
