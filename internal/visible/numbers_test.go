package visible

import (
	"math"
	"testing"
)

// TestSize checks the units, the plural and the rounding of sizes.
func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 999: "999 bytes", 1023: "1,023 bytes", 1024: "1.0 KiB", 1536: "1.5 KiB",
		1<<20 - 1: "1.0 MiB", 1 << 20: "1.0 MiB", 1<<30 - 1: "1.0 GiB", 1 << 40: "1.0 TiB", math.MaxInt64: "8.0 EiB",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestNumber checks where the commas of numbers are.
func TestNumber(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -999: "-999", -1000: "-1,000"} {
		if got := Number(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
