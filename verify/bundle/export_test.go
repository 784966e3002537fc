package bundle

import (
	"strings"

	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Preimage is what Root hashes.
func Preimage(taskSpec []byte, hashes, status canonjson.Value) string {
	var b strings.Builder
	writePreimage(&b, taskSpec, hashes, status)
	return b.String()
}

// ChainPreimage is what ChainRoot hashes.
func ChainPreimage(bundleRoots, runIDs []string) ([]byte, error) {
	return chainPreimage(bundleRoots, runIDs)
}

// CheckKey checks every key.
var CheckKey = checkKey

// SmallOrderY is the table of SmallOrder.
var SmallOrderY = smallOrderY

// Thinned is how a table with larger blocks than the default ones gets its values.
var Thinned = thinned
