package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A mutant is a patch with what its header says.
type mutant struct {
	name    string // of the file, without its suffix
	path    string // absolute
	what    string // the fault in one sentence
	breaks  string
	pkg     string // of the test, as go test takes it
	test    string // a name
	env     []string
	inTest  bool     // the test is part of make test
	touches []string // files, sorted
}

const suffix = ".patch"

// load reads all patches of a directory, in the order of their names.
func load(dir string) ([]*mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s holds no patch", dir)
	}
	if err != nil {
		return nil, err
	}
	var all []*mutant
	numbers := map[string]string{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parse(string(raw))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		m.name = strings.TrimSuffix(filepath.Base(path), suffix)
		if m.path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(m.name, "-")
		if other, taken := numbers[number]; taken {
			return nil, fmt.Errorf("%s and %s have one number", other, m.name)
		}
		numbers[number] = m.name
		all = append(all, m)
	}
	return all, nil
}

var (
	testForm   = regexp.MustCompile(`^\^(Test\w+)\$$`)
	pkgForm    = regexp.MustCompile(`^\./[\w/]+$`)
	targetForm = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)$`)
	shipped    = regexp.MustCompile(`^(staging|verify|fusefs|restore)/.+\.go$`)
)

// parse reads one patch.
func parse(text string) (*mutant, error) {
	head, diff, ok := strings.Cut(text, "\n--- a/")
	if !ok {
		return nil, errors.New("it has no diff")
	}
	m := &mutant{}
	fields, err := m.header(head)
	if err != nil {
		return nil, err
	}
	m.breaks, m.pkg = fields["Breaks"], fields["Package"]
	match := testForm.FindStringSubmatch(fields["Test"])
	switch lane := fields["Lane"]; {
	case m.what == "" || m.breaks == "":
		return nil, errors.New("it does not say what the fault is and what it breaks")
	case match == nil:
		return nil, fmt.Errorf("field Test is %q; it has to be one name of a test, like ^TestX$", fields["Test"])
	case !pkgForm.MatchString(m.pkg):
		return nil, fmt.Errorf("field Package is %q; it has to be like ./staging", m.pkg)
	case lane != "test" && lane != "sweep":
		return nil, fmt.Errorf("field Lane is %q; it has to be test or sweep", lane)
	case lane == "test" && strings.HasPrefix(fields["Env"], "SPECTRUM_TESTS="):
		return nil, errors.New("a test of make test has to run without SPECTRUM_TESTS")
	}
	m.test, m.inTest = match[1], fields["Lane"] == "test"
	if fields["Env"] != "" {
		m.env = []string{fields["Env"]}
	}
	for _, target := range targetForm.FindAllStringSubmatch("\n--- a/"+diff, -1) {
		if file := target[1]; !shipped.MatchString(file) || strings.HasSuffix(file, "_test.go") {
			return nil, fmt.Errorf("it changes %s, which is not shipped code of staging, verify, fusefs or restore", file)
		}
		m.touches = append(m.touches, target[1])
	}
	slices.Sort(m.touches)
	return m, nil
}

// header reads what stands above the diff: a sentence, and fields.
func (m *mutant) header(head string) (map[string]string, error) {
	fields := map[string]string{}
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		key, value, isField := strings.Cut(line, ": ")
		switch {
		case line == "":
		case isField && slices.Contains([]string{"Breaks", "Package", "Test", "Env", "Lane"}, key):
			if fields[key] != "" {
				return nil, fmt.Errorf("%s is there twice", key)
			}
			fields[key] = value
		case len(fields) > 0:
			return nil, fmt.Errorf("%q is not a field", line)
		default:
			m.what = strings.TrimSpace(m.what + " " + line)
		}
	}
	return fields, nil
}
