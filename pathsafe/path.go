// This file is law: the form of an output path (SPECTRUM-06 sections 4.2, 4.3 and 8.4.5).

package pathsafe

import (
	"strings"
)

const (
	// MaxPath is the length in bytes of the longest path that can be accessed.
	// A longer one may be well formed, but every access returns ErrTooLong, on
	// every file system.
	MaxPath = 4095
	// MaxName is the same for a single component.
	MaxName = 255
)

// Path is an output path in the only form the law allows: relative, not empty, components
// separated by single slashes, none of them "." or "..", without backslash and NUL. All other
// bytes are legal: "...", "..a", control characters, bytes that are not UTF-8. Only [Found]
// makes one with a backslash.
//
// Paths are comparable. The zero value is not a path, and every access rejects it.
type Path struct{ s string }

// Parse makes a Path of s, or returns a [*FormError]. Traversal is tested before
// NUL (SPECTRUM-06 section 8.4.5). Nothing is repaired.
func Parse(s string) (Path, error) {
	if err := checkForm(s); err != nil {
		return Path{}, err
	}
	return Path{s}, nil
}

// Found returns a Path of a name found beneath a root. Unlike the path of an output it may contain
// a backslash.
func Found(s string) (Path, error) {
	if err := checkNames(s); err != nil {
		return Path{}, err
	}
	return Path{s}, nil
}

func checkForm(s string) error {
	if strings.IndexByte(s, '\\') >= 0 {
		return &FormError{s, ErrTraversal}
	}
	return checkNames(s)
}

func checkNames(s string) error {
	for rest, more := s, true; more; {
		var name string
		name, rest, more = strings.Cut(rest, "/")
		if name == "" || name == "." || name == ".." {
			return &FormError{s, ErrTraversal}
		}
	}
	if strings.IndexByte(s, 0) >= 0 {
		return &FormError{s, ErrNullByte}
	}
	return nil
}

// String returns the path as it was parsed.
func (p Path) String() string { return p.s }

// Components returns the names in the path, none for the zero value.
func (p Path) Components() []string {
	if p.s == "" {
		return nil
	}
	return strings.Split(p.s, "/")
}

// Base returns the last component.
func (p Path) Base() string { return p.s[strings.LastIndexByte(p.s, '/')+1:] }

// Parent returns the path without its last component, and false for a
// top-level name, which has none.
func (p Path) Parent() (Path, bool) {
	i := strings.LastIndexByte(p.s, '/')
	if i < 0 {
		return Path{}, false
	}
	return Path{p.s[:i]}, true
}

// Child returns the path of name, a single component, below p.
func (p Path) Child(name string) (Path, error) {
	if strings.IndexByte(name, '/') >= 0 {
		return Path{}, &FormError{name, ErrTraversal}
	}
	if err := checkForm(name); err != nil {
		return Path{}, err
	}
	if p.s == "" {
		return Path{name}, nil
	}
	return Path{p.s + "/" + name}, nil
}

// prefix returns the first n components, "" for none, and false if there are fewer.
func (p Path) prefix(n int) (string, bool) {
	if n <= 0 || p.s == "" {
		return "", n == 0
	}
	for i := range len(p.s) {
		if p.s[i] != '/' {
			continue
		}
		if n--; n == 0 {
			return p.s[:i], true
		}
	}
	return p.s, n == 1
}

// checkLength rejects the empty path, and a path longer than the limits.
func (p Path) checkLength() error {
	if p.s == "" {
		return &FormError{"", ErrTraversal}
	}
	if len(p.s) > MaxPath {
		return ErrTooLong
	}
	start := 0
	for i := 0; i <= len(p.s); i++ {
		if i < len(p.s) && p.s[i] != '/' {
			continue
		}
		if i-start > MaxName {
			return ErrTooLong
		}
		start = i + 1
	}
	return nil
}

// checkName returns an error unless name is a valid single component; unlike a component of a Path
// it may contain a backslash.
func checkName(name string) error {
	switch {
	case name == "" || name == "." || name == ".." || strings.IndexByte(name, '/') >= 0:
		return &FormError{name, ErrTraversal}
	case strings.IndexByte(name, 0) >= 0:
		return &FormError{name, ErrNullByte}
	case len(name) > MaxName:
		return ErrTooLong
	}
	return nil
}
