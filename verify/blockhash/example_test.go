package blockhash_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spectrumfs/spectrum/verify/blockhash"
)

// Hash a file once; then any part of it, or of a copy, is checked without
// reading the rest.
func Example() {
	content := bytes.Repeat([]byte("0123456789abcdef"), blockhash.BlockSize/4) // four blocks
	table, err := blockhash.NewHasher().Sum(context.Background(), bytes.NewReader(content), int64(len(content)))
	if err != nil {
		fmt.Println(err)
		return
	}
	content[2*blockhash.BlockSize] ^= 1 // a byte of the third block changes

	r := blockhash.NewReader(bytes.NewReader(content), &table)
	p := make([]byte, 4)
	for block := range table.Blocks() {
		_, err := r.ReadAt(p, block*blockhash.BlockSize)
		var mismatch *blockhash.MismatchError
		fmt.Println(block, err == nil, errors.As(err, &mismatch))
	}
	// Output:
	// 0 true false
	// 1 true false
	// 2 false true
	// 3 true false
}
