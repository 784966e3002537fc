package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// names replaces what is another one each time: ids, and the place of the demo.
type names struct {
	demo string
	ids  map[string]string
}

func newNames(dir string) *names { return &names{filepath.Join(dir, "demo"), map[string]string{}} }

var anID = regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{8,64}\b`)

// of is a line with names that are always the same.
func (n *names) of(line string) string {
	return anID.ReplaceAllStringFunc(strings.ReplaceAll(line, n.demo, "/tmp/demo"), n.id)
}

// id is the id that stands for another one. It follows from how many were before.
func (n *names) id(real string) string {
	if n.ids[real] == "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "id %d", len(n.ids)))
		digits := hex.EncodeToString(sum[:])
		var b strings.Builder
		for i, c := range real {
			if c != '-' {
				c = rune(digits[i])
			}
			b.WriteRune(c)
		}
		n.ids[real] = b.String()
	}
	return n.ids[real]
}
