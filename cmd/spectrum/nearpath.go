package main

import (
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// nearPath is an existing directory whose path differs from a missing one by a slip in one name; ""
// where there is none, or several are as near.
func nearPath(path string) string {
	rest := ""
	for !isThere(filepath.Dir(path)) {
		if path == filepath.Dir(path) {
			return ""
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
	if notServed("directory", filepath.Dir(path)) != nil {
		return ""
	}
	dir, err := pathsafe.OpenRoot(filepath.Dir(path))
	if err != nil {
		return ""
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return ""
	}
	typed, found, best := filepath.Base(path), "", nearest+1
	for _, name := range names {
		far := slipsBetween(strings.ToLower(typed), strings.ToLower(name))
		if far > best || far >= len(typed) {
			continue
		}
		at := filepath.Join(filepath.Dir(path), name, rest)
		if way, err := pathsafe.WayTo(at); err != nil || way.Missing || !way.End.Mode.IsDir() {
			continue
		}
		if far == best {
			found = ""
			continue
		}
		found, best = at, far
	}
	if best > nearest {
		return ""
	}
	return found
}

// slipsBetween counts the letters that are missing, too many, wrong, or swapped with the next one.
func slipsBetween(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			wrong := 1
			if x[i-1] == y[j-1] {
				wrong = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+wrong)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
