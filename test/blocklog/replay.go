package blocklog

import "math/rand/v2"

// A Replay rebuilds a disk from the image that a store was given and the log
// that it has written.
type Replay struct {
	base    string
	records []Record
	durable *Image // base and all writes before the last flush of the first applied records
	applied int
}

// NewReplay begins at the image.
func NewReplay(base string, records []Record) *Replay {
	return &Replay{base: base, records: records}
}

// Image writes the disk as it could be if the power went after the first n
// records. A write after the last flush is kept or lost, by the seed: with an
// even one as a whole, with an odd one each block of it; with the seed 0 all are
// kept. It tells how many writes or blocks were lost. Rising n are quickest.
func (r *Replay) Image(path string, n int, seed uint64) (lost int, err error) {
	flush := lastFlush(r.records[:n])
	if err := r.advance(flush); err != nil {
		return 0, err
	}
	f, err := r.durable.save(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	dice := rand.New(rand.NewPCG(seed, uint64(n)))
	for _, rec := range r.records[flush:n] {
		for rec.Kind == Write && len(rec.Data) > 0 {
			size := int64(len(rec.Data))
			if seed%2 == 1 {
				size = min(size, blockSize-rec.Off%blockSize)
			}
			if seed != 0 && dice.IntN(2) == 0 {
				lost++
			} else if _, err := f.WriteAt(rec.Data[:size], rec.Off); err != nil {
				return 0, err
			}
			rec.Data, rec.Off = rec.Data[size:], rec.Off+size
		}
	}
	return lost, nil
}

// advance applies the writes of the first n records.
func (r *Replay) advance(n int) (err error) {
	if r.durable == nil || n < r.applied {
		if r.durable, err = LoadImage(r.base); err != nil {
			return err
		}
		r.applied = 0
	}
	for ; r.applied < n; r.applied++ {
		if rec := r.records[r.applied]; rec.Kind == Write {
			r.durable.write(rec.Data, rec.Off)
		}
	}
	return nil
}

// lastFlush is how many records there are up to and with the last flush.
func lastFlush(records []Record) int {
	for i := len(records); i > 0; i-- {
		if records[i-1].Kind == Flush {
			return i
		}
	}
	return 0
}

// Unflushed is how many writes a power cut after these records can take.
func Unflushed(records []Record) (writes int) {
	for _, r := range records[lastFlush(records):] {
		if r.Kind == Write {
			writes++
		}
	}
	return writes
}
