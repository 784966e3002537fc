package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// ownBuild is what this test itself was built from.
func ownBuild(t *testing.T) (*buildinfo.BuildInfo, string) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	info.Deps = append(info.Deps, &debug.Module{Path: "golang.org/x/sys", Version: "v0.1.0+incompatible", Sum: "h1:x"})
	return info, binary
}

// TestSPDX: every module is a package, every relation is between two that are there,
// and nothing depends on when it was written.
func TestSPDX(t *testing.T) {
	info, binary := ownBuild(t)
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	raw, err := spdx(info, "1.2.3", binary)
	if err != nil {
		t.Fatal(err)
	}
	again, err := spdx(info, "1.2.3", binary)
	if err != nil || !bytes.Equal(raw, again) {
		t.Errorf("two documents, %v:\n%s\n%s", err, raw, again)
	}
	var doc document
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Creation.Created != "1970-01-02T00:00:00Z" || !strings.Contains(doc.Namespace, doc.Packages[0].Checksums[0].Value) {
		t.Errorf("%+v", doc)
	}
	ids := map[string]bool{doc.ID: true}
	for _, p := range doc.Packages {
		if ids[p.ID] || notInID.MatchString(p.ID) || len(p.References) != 1 {
			t.Errorf("%+v", p)
		}
		ids[p.ID] = true
	}
	for _, r := range doc.Relationships {
		if !ids[r.Element] || !ids[r.Related] {
			t.Errorf("%+v", r)
		}
	}
	if want := len(info.Deps) + 2; len(doc.Packages) != want || len(doc.Relationships) != want {
		t.Errorf("%d packages and %d relations, not %d", len(doc.Packages), len(doc.Relationships), want)
	}
	last := doc.Packages[len(doc.Packages)-1]
	if got := last.References[0].Locator; got != "pkg:golang/golang.org/x/sys@v0.1.0%2Bincompatible" || last.Comment != "go.sum: h1:x" {
		t.Errorf("%+v", last)
	}
}

// TestLicences: each module has its text, and Go's own is named.
func TestLicences(t *testing.T) {
	info, _ := ownBuild(t)
	text, err := licences(info)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"golang.org/x/sys v0.1.0+incompatible, and the Go standard library go1", "Redistribution and use"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}

// TestRejected: what cannot be said is an error, and prints nothing.
func TestRejected(t *testing.T) {
	info, binary := ownBuild(t)
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	none := filepath.Join(t.TempDir(), "none")
	for _, args := range [][3]string{{"spdx", "1", none}, {"spdx", "1", "main.go"}, {"spdx", "", binary}, {"sbom", "1", binary}} {
		if err := run(args[0], args[1], args[2]); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	if text, err := licenceOf(module{path: "example.com/none"}); err == nil || text != nil {
		t.Errorf("licence of no module: %q, %v", text, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "now")
	if text, err := spdx(info, "1", binary); err == nil || text != nil {
		t.Errorf("%q, %v", text, err)
	}
}
