package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// licenceFile is the name of a file with a licence, or with what a licence asks to be
// passed on.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)`)

// goModule has the licence of Go itself, word for word; not every installation of Go
// comes with it.
const goModule = "golang.org/x/sys"

// licences are the texts that have to go with a binary because of what was linked
// into it: those of the modules, and that of Go.
func licences(info *buildinfo.BuildInfo) ([]byte, error) {
	var all bytes.Buffer
	for _, m := range modules(info) {
		text, err := licenceOf(m)
		if err != nil {
			return nil, err
		}
		name := m.path + " " + m.version
		if m.path == goModule {
			name += ", and the Go standard library " + info.GoVersion
		}
		entry(&all, name, text)
	}
	return all.Bytes(), nil
}

func entry(all *bytes.Buffer, name string, text []byte) {
	if all.Len() > 0 {
		all.WriteString("\n------------------------------------------------------------------------\n\n")
	}
	fmt.Fprintf(all, "%s\n\n%s\n", name, bytes.TrimSpace(text))
}

// licenceOf are the licence files of a module. One without any cannot be shipped.
func licenceOf(m module) ([]byte, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", m.path).Output()
	if err != nil {
		return nil, fmt.Errorf("looking for %s: %w", m.path, err)
	}
	dir := string(bytes.TrimSpace(out))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var text []byte
	for _, file := range entries {
		if !licenceFile.MatchString(file.Name()) || !file.Type().IsRegular() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			return nil, err
		}
		text = append(text, raw...)
	}
	if len(text) == 0 {
		return nil, fmt.Errorf("%s has no licence file", m.path)
	}
	return text, nil
}
