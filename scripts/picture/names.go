package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// names replaces what differs each time: IDs, times and the directory of the story.
type names struct {
	ids map[string]string
}

var (
	anID  = regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{8,64}\b`)
	aDir  = regexp.MustCompile(`/[^ "]*/spectrum-story\.\w+`)
	aTime = regexp.MustCompile(`\b\d{8}T\d{6}\.\d{3}Z`)
	aDay  = regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d UTC`)
)

// of returns a line with names that are always the same.
func (n *names) of(line string) string {
	line = aDir.ReplaceAllString(line, "/tmp/story")
	line = aTime.ReplaceAllString(line, "20260101T000000.000Z")
	line = aDay.ReplaceAllString(line, "2026-01-01 00:00 UTC")
	return anID.ReplaceAllStringFunc(line, n.id)
}

// id returns the ID that replaces another one. It follows from how many were before. The beginning of
// an ID that was before becomes the beginning of the same one.
func (n *names) id(real string) string {
	for known, name := range n.ids {
		if strings.HasPrefix(known, real) {
			return name[:len(real)]
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "id %d", len(n.ids)))
	digits := hex.EncodeToString(sum[:])
	var b strings.Builder
	for i, c := range real {
		if c != '-' {
			c = rune(digits[i])
		}
		b.WriteRune(c)
	}
	if n.ids == nil {
		n.ids = map[string]string{}
	}
	n.ids[real] = b.String()
	return b.String()
}
