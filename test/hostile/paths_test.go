package hostile

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/test/forge"
	"github.com/spectrumfs/spectrum/test/harness"
)

// named signs one output with this path. Its source, with the signed content,
// is put where the path would lead, as far as that is in the place.
func named(path, source string) func(p *place) {
	return func(p *place) {
		body := "x"
		if filepath.IsAbs(path) {
			body = harness.ReadFile(p, "/etc/passwd")
		}
		p.only(forge.Outputs{path: body})
		if source != "" {
			p.replace(filepath.Join(p.project, source), file(body))
		}
		p.sealArgs = []string{path}
	}
}

// pathRows are the rows about the form of output paths. The
// arguments of seal are paths of a shell: where one means a file of the project,
// it is sealed under its normal name.
func pathRows() []entry {
	form := func(row int, path, source string, restore, seal verdict) entry {
		name := path
		if name == "" {
			name = "empty"
		}
		return entry{row, strings.ReplaceAll(name, "\x00", "NUL"), named(path, source), planned(missing, restore, seal)}
	}
	noNUL := none("an argument of a command cannot hold a NUL byte")
	entries := []entry{
		form(1, "../x", "../x", traversal, refusal),
		form(2, "a/../../x", "../x", traversal, refusal),
		form(3, "a/../b", "b", traversal, accepted),
		form(4, "..", "", traversal, refusal),
		form(5, ".", "", traversal, accepted), // all of the project
		form(6, "./a", "a", traversal, accepted),
		form(7, "a/./b", "a/b", traversal, accepted),
		form(8, "/etc/passwd", "", traversal, refusal),
		form(9, "//etc/passwd", "", traversal, refusal),
		form(10, "a//b", "a/b", traversal, accepted),
		form(11, "a/", "a", traversal, accepted),
		form(12, "", "", traversal, refusal),
		form(13, `..\x`, `..\x`, traversal, refusal),
		form(14, `a\b`, `a\b`, traversal, refusal),
		form(15, `C:\x`, `C:\x`, traversal, refusal),
		form(15, `\\srv\x`, `\\srv\x`, traversal, refusal),
		form(16, "a\x00b", "", nullByte, noNUL),
		form(17, "../\x00", "", traversal, noNUL),
	}
	// A directory is sealed whole or not at all.
	below := form(14, `d/a\b`, `d/a\b`, traversal, refusal)
	below.name, below.make = "in a directory that is sealed", func(p *place) {
		named(`d/a\b`, `d/a\b`)(p)
		p.sealArgs = []string{"d"}
	}
	return append(append(entries, below), reservedRows()...)
}

// reservedRows are names that a restore needs for itself: verified, since they
// are names like any other, and never restored.
func reservedRows() (entries []entry) {
	for _, c := range []struct {
		row  int
		path string
	}{
		{19, "RESTORE_REPORT.json"}, {19, "RESTORE_MANIFEST.json"},
		{20, "RESTORE_MANIFEST.json/x"}, {20, "RESTORE_REPORT.json/a/b"},
		{21, ".spectrum06_staging_x/a"}, {21, ".spectrum06_chain_x.json"}, {21, ".spectrum06_"},
	} {
		entries = append(entries, entry{c.row, c.path, named(c.path, c.path), planned(accepted, reserved, refusal)})
		entries = append(entries, entry{c.row, c.path + " in a chain", func(p *place) {
			named(c.path, c.path)(p)
			p.chain = true
		}, planned(accepted, reserved, refusal)})
	}
	return entries
}

// A path of 4,090 bytes can be had, one of more than 4,095 cannot: the kernel
// takes none, so its source is missing, also for a program that could walk there.
func lengthRows() []entry {
	var (
		long  = strings.Repeat(strings.Repeat("d", 254)+"/", 16) + "ffffffffff" // 4,090 bytes
		deep  = strings.Repeat("d/", 1999) + "f"
		over  = strings.Repeat("n/", 2000) + strings.Repeat("abcd/", 199) + "abcde" // 5,000 bytes
		whole = func(path string) func(p *place) {
			return func(p *place) {
				p.only(forge.Outputs{path: "deep\n"})
				p.deep(path, "deep\n")
				p.sealArgs = []string{strings.SplitN(path, "/", 2)[0]} // the whole of it
			}
		}
		walker = func(make func(p *place)) func(p *place) {
			return func(p *place) {
				make(p)
				p.under = []string{"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=openat2", "-e", "inject=openat2:error=ENOSYS"}
			}
		}
	)
	notMounted := planned(accepted, accepted, accepted)
	notMounted.mount = none("a view under strace is not the child that a signal ends; the one before has shown it")
	return []entry{
		{22, "component of 256 bytes", named(strings.Repeat("c", 256), ""), planned(missing, strict, machine)},
		{22, "component of 256 bytes, in a directory", named("d/"+strings.Repeat("c", 256)+"/x", ""), planned(missing, strict, machine)},
		{23, "path of 5,000 bytes that is there", whole(over), planned(missing, strict, machine)},
		{23, "path of 5,000 bytes, without openat2", walker(whole(over)), planned(missing, strict, machine)},
		{23, "depth of 2,000", whole(deep), planned(accepted, accepted, accepted)},
		{23, "depth of 300, without openat2", walker(whole(deep[len(deep)-601:])), notMounted},
		{24, "path of 4,090 bytes", whole(long), planned(accepted, accepted, accepted)},
		{24, "path of 4,090 bytes, in a chain", func(p *place) {
			short := strings.Replace(long, strings.Repeat("d", 254), strings.Repeat("d", 240), 1)
			whole(short)(p)
			p.chain = true
		}, planned(accepted, accepted, accepted)},
		{25, "file and directory, a file", func(p *place) {
			p.only(forge.Outputs{"a": "x", "a/b": "x"})
			p.replace(p.at("a"), file("x"))
			p.sealArgs = []string{"a", "a/b"}
		}, planned(missing, strict, refusal)},
		{25, "file and directory, a directory", func(p *place) {
			p.only(forge.Outputs{"a": "x", "a/b": "x"})
			p.replace(p.at("a/b"), file("x"))
			p.sealArgs = []string{"a", "a/b"} // which are one file
		}, planned(missing, strict, accepted)},
	}
}

// oddNames are names that only look dangerous, by row.
var oddNames = []struct {
	row   int
	name  string
	paths []string
}{
	{18, "dots", []string{"...", "..a", "a/...", "a../b", ". ", " "}},
	{28, "to be shown", shownNames},
	{29, "encoded dots", []string{"%2e%2e/x", "\uff0e\uff0e\uff0fx", "\uff0e\uff0e/x", "..%00", "..;/x"}},
	{30, "like flags", []string{"--json", "-rf", "-", "--x/y", "--state-dir=x", "-h"}},
	{31, "magic elsewhere", []string{"proc/self/fd/3", "dev/null", "NUL", "CON", "~", "$HOME", "*", "?", "[a]"}},
}

func oddly(paths []string) func(p *place) {
	return func(p *place) {
		outputs := forge.Outputs{}
		for _, path := range paths {
			outputs[path] = "content of " + path
		}
		harness.Must(p, os.RemoveAll(p.at("gen")))
		p.runs, p.dirs = nil, nil
		harness.Must(p, os.RemoveAll(p.runDir("run-1")))
		p.add("run-1", outputs)
		p.sealArgs = sorted(outputs)
	}
}

func nameRows() (entries []entry) {
	good := planned(accepted, accepted, accepted)
	for _, c := range oddNames {
		entries = append(entries, entry{c.row, c.name, oddly(c.paths), good}, entry{c.row, c.name + ", in a chain", func(p *place) {
			oddly(c.paths)(p)
			p.chain = true
		}, good})
	}
	twins := func(row int, name string, names ...string) []entry {
		folding := good
		folding.commit = "RESTORE_INTERNAL_ERROR" // the law has no code for a copy that cannot be made
		return []entry{{row, name, oddly(names), good}, {row, name + ", where names are folded", func(p *place) {
			oddly(names)(p)
			p.foldingRoot()
			p.staged = true
		}, folding}}
	}
	entries = append(entries, entry{26, "one name, where names are folded", func(p *place) {
		oddly([]string{"d/a", "b"})(p)
		p.foldingRoot()
	}, good})
	return append(append(entries, twins(26, "A and a", "A", "a")...), twins(27, "NFC and NFD", "\u00e9", "e\u0301")...)
}
