// Command author writes the cases of the conformance suite.
//
//	go run ./test/conformance/author [-dir DIR]
//
// It knows the laws and asks no program: every fault of its tables names what
// each law says to it, and where in that law's order. The verdict on a case is
// the first of its faults in that order. A pair of faults whose order no law
// decides is not a case.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
)

func main() {
	dir := flag.String("dir", "testdata/conformance", "the `directory` of the cases")
	flag.Parse()
	if err := write(*dir, cases()); err != nil {
		fmt.Fprintln(os.Stderr, "author:", err)
		os.Exit(1)
	}
}

// cases are all cases, in the order of their names.
func cases() []suite.Case {
	all := slices.Concat(accepted(), singles02(), singles03(), singles05(), singles06(),
		pairs02(), pairs03(), pairs05(), orders05(), pairs06(), chains05(), chains06(), wholeChains(), replacements(), changeSets(), blockTables())
	slices.SortFunc(all, func(a, b suite.Case) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// write makes the directory hold these cases and no others. Files that are right
// are left alone.
func write(dir string, cases []suite.Case) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return err
	}
	stale := map[string]bool{}
	for _, file := range old {
		stale[file] = true
	}
	for i, c := range cases {
		if i > 0 && cases[i-1].Name == c.Name {
			return fmt.Errorf("two cases are named %q", c.Name)
		}
		file, content := filepath.Join(dir, c.Name+".txtar"), suite.Format(c)
		delete(stale, file)
		if is, err := os.ReadFile(file); err == nil && bytes.Equal(is, content) {
			continue
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	for file := range stale {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}
