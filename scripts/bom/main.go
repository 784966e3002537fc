// Command bom says what is in a released binary: which modules were linked into it,
// as an SPDX document, and under which licences they are.
//
//	bom -version VERSION spdx BINARY
//	bom licences BINARY
//
// Both are read from the binary itself, which names its modules, and not from
// go.mod, which has those of the tests too. The same binary and SOURCE_DATE_EPOCH
// have the same document, byte for byte. Licences are read where the modules are, in
// the directory of the main module.
package main

import (
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	version := flag.String("version", "", "`version` of the release")
	flag.Parse()
	if err := run(flag.Arg(0), *version, flag.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, "bom:", err)
		os.Exit(1)
	}
}

func run(what, version, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	var text []byte
	switch what {
	case "spdx":
		if version == "" {
			return errors.New("-version is missing")
		}
		text, err = spdx(info, version, binary)
	case "licences":
		text, err = licences(info)
	default:
		err = fmt.Errorf("spdx or licences, not %q", what)
	}
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

// epoch is the time that a release is of.
func epoch() (time.Time, error) {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// modules are those that were linked into a binary beside the main one, by path, as
// the linker lists them.
func modules(info *buildinfo.BuildInfo) (linked []module) {
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		linked = append(linked, module{dep.Path, dep.Version, dep.Sum})
	}
	return linked
}

// module is one of them; the sum is that of go.sum.
type module struct{ path, version, sum string }
