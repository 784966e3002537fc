package blocklog

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// Kind says what a record is.
type Kind byte

// The kinds of records.
const (
	Write Kind = 'W' // Data at Off
	Flush Kind = 'F' // what was written before is durable
	Mark  Kind = 'M' // Data is the name that a test gave to this moment
)

// A Record is one request that a disk got, in the order in which it took them.
type Record struct {
	Kind Kind
	Off  int64
	Data []byte
}

// headSize is the length of what stands before the data of a record: kind,
// offset, length.
const headSize = 1 + 8 + 4

func (r Record) appendTo(b []byte) []byte {
	b = append(b, byte(r.Kind))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Off))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Data)))
	return append(b, r.Data...)
}

// ReadLog reads all records of a log file.
func ReadLog(path string) ([]Record, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var records []Record
	for len(b) > 0 {
		if len(b) < headSize {
			return nil, fmt.Errorf("%q: %w", path, io.ErrUnexpectedEOF)
		}
		r := Record{Kind: Kind(b[0]), Off: int64(binary.LittleEndian.Uint64(b[1:]))}
		size := int(binary.LittleEndian.Uint32(b[9:]))
		if b = b[headSize:]; len(b) < size {
			return nil, fmt.Errorf("%q: %w", path, io.ErrUnexpectedEOF)
		}
		r.Data, b = b[:size:size], b[size:]
		records = append(records, r)
	}
	return records, nil
}

// Find returns how many records there are up to and with the first mark of this
// name, or 0.
func Find(records []Record, mark string) int {
	for i, r := range records {
		if r.Kind == Mark && string(r.Data) == mark {
			return i + 1
		}
	}
	return 0
}
