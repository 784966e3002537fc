package transcript

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A page shows what one run has printed. What another run prints differently is
// compared as what it is:
//
//   - a time with any other time;
//   - an id (64 hex digits, the beginning of one, or a UUID) with the same id
//     wherever the page shows it, and with no other one;
//   - the operator, who is ada on a page;
//   - "..." alone on a line with any number of lines.
//
// Everything else is compared letter by letter.

var (
	varying  = regexp.MustCompile(`\d{8}T\d{6}\.\d{3}Z|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|\d{4}-\d\d-\d\d \d\d:\d\d UTC|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{8,64}\b`)
	operator = regexp.MustCompile(`(?m)^(\d+ [0-9T:-]+Z )\S+( )|(, released [0-9T:-]+Z by )\S+|^([0-9T:-]+Z (?:commit|rollback) .* by )[^:\s]+`)
)

// asAda replaces an operator.
const asAda = "${1}${3}${4}ada${2}"

// checkPrinted holds the output of each block against what the page shows of it.
func checkPrinted(t *testing.T, blocks []block, printed []string) {
	t.Helper()
	if len(printed) != len(blocks)+1 {
		t.Fatalf("%d blocks have printed %d outputs", len(blocks), len(printed)-1)
	}
	ids := identities{}
	for n, b := range blocks {
		if len(b.shown) == 0 {
			continue
		}
		out := operator.ReplaceAllString(printed[n], asAda)
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if err := ids.compare(b.shown, lines); err != nil {
			t.Errorf("after %q: %v\n--- printed ---\n%s", b.commands[len(b.commands)-1], err, out)
		}
	}
}

// identities are the ids of a page, each with the one that was printed for it.
type identities map[string]string

// compare holds lines that are shown against those that were printed.
func (ids identities) compare(shown, printed []string) error {
	at := 0
	skipping := false
	for _, line := range shown {
		if line == "..." {
			skipping = true
			continue
		}
		if skipping {
			found := slices.IndexFunc(printed[at:], func(other string) bool { return plainOf(other) == plainOf(line) })
			if found < 0 {
				return fmt.Errorf("nothing like this was printed: %s", line)
			}
			at, skipping = at+found, false
		}
		if at == len(printed) {
			return fmt.Errorf("nothing more was printed, and this is shown: %s", line)
		}
		if err := ids.same(line, printed[at]); err != nil {
			return err
		}
		at++
	}
	if !skipping && at < len(printed) {
		return fmt.Errorf("more was printed than is shown: %s", printed[at])
	}
	return nil
}

// plainOf is a line without what varies.
func plainOf(line string) string { return varying.ReplaceAllStringFunc(line, kindOf) }

// kindOf says what a varying word is.
func kindOf(word string) string {
	if strings.HasSuffix(word, "Z") {
		return "<time>"
	}
	return fmt.Sprintf("<id of %d>", len(word))
}

// same compares one line.
func (ids identities) same(shown, printed string) error {
	if plainOf(shown) != plainOf(printed) {
		return fmt.Errorf("shown:   %s\nprinted: %s", shown, printed)
	}
	words, others := varying.FindAllString(shown, -1), varying.FindAllString(printed, -1)
	for n, word := range words {
		if kindOf(word) != "<time>" && !ids.fits(word, others[n]) {
			return fmt.Errorf("the id %s is another one than before\nshown:   %s\nprinted: %s", others[n], shown, printed)
		}
	}
	return nil
}

// fits remembers what was printed for an id, and reports whether it is the same as before. The
// beginning of an id fits the whole one.
func (ids identities) fits(shown, printed string) bool {
	for known, other := range ids {
		n := min(len(known), len(shown))
		if (known[:n] == shown[:n]) != (other[:n] == printed[:n]) {
			return false
		}
	}
	ids[shown] = printed
	return true
}
