package visible

import (
	"fmt"
	"strconv"
)

// Number returns a number with a comma at every third digit: "20,000".
func Number[N int | int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Count returns a number with its noun: "1 item", "2,000 items".
func Count[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Number(n) + " " + noun
}

// Size returns a number of bytes: "1 byte", "1,000 bytes", "1.5 KiB".
func Size(n int64) string {
	if n < 1024 {
		return Count(n, "byte")
	}
	const units = "KMGTPE"
	size, unit := float64(n)/1024, 0
	for ; size >= 1023.95 && unit < len(units)-1; unit++ { // 1023.95 would be printed as 1024.0
		size /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", size, units[unit])
}
