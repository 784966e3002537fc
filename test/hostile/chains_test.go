package hostile

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/test/forge"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// chainRows are about run ids: what a chain makes directories of.
func chainRows() (entries []entry) {
	add := func(name string, want verdicts, make func(p *place)) {
		entries = append(entries, entry{84, name, make, want})
	}
	twice := planned("CHAIN_DUPLICATE_RUN", "RESTORE_CHAIN_RUN_ID_DUPLICATE", accepted)
	again := func(path func(dir string) string) func(p *place) {
		return func(p *place) { p.dirs = append(p.dirs, path(p.dirs[0])) }
	}
	add("the same run twice", twice, again(func(dir string) string { return dir }))
	add("trailing slash", twice, again(func(dir string) string { return dir + "/" }))
	add("double slash", twice, again(func(dir string) string { return filepath.Dir(dir) + "//" + filepath.Base(dir) }))
	add("dot", twice, again(func(dir string) string { return dir + "/." }))
	add("out and back", twice, again(func(dir string) string { return dir + "/../" + filepath.Base(dir) }))
	add("the same id in another directory", twice, func(p *place) {
		p.apart = true
		dir := p.top + "/elsewhere/run-1"
		harness.Must(p, p.last().Write(dir))
		p.dirs = append(p.dirs, dir)
	})
	add("dot dot is another directory", always("USAGE"), again(func(dir string) string { return dir + "/.." }))
	entries[len(entries)-1].want.seal = accepted
	add("dot dot, with a project root", planned("ARTIFACT_MISSING", strict, accepted), func(p *place) {
		p.apart = true
		p.dirs = append(p.dirs, p.dirs[0]+"/..")
	})
	add("a link to a run has an id of its own", planned(accepted, accepted, accepted), func(p *place) {
		r := *p.last()
		r.id, r.dir = "alias", p.runDir("alias")
		harness.Must(p, os.Symlink("run-1", r.dir))
		p.runs, p.dirs = append(p.runs, r), append(p.dirs, r.dir)
	})
	for _, c := range []struct {
		id   string
		want verdicts
	}{
		{".spectrum06_x", planned(accepted, reserved, accepted)},
		{`..\x`, planned(accepted, traversal, accepted)},
		{"x\xff", verdicts{"SERIALIZATION_INVALID", strict, refusal, refusal, refusal}},
		{"RESTORE_REPORT.json", planned(accepted, accepted, accepted)},
		{"a\nb", planned(accepted, accepted, accepted)},
		{"...", planned(accepted, accepted, accepted)},
		{"-rf", planned(accepted, accepted, accepted)},
		{"\x1b[2J\u202e|`", planned(accepted, accepted, accepted)},
	} {
		add(fmt.Sprintf("id %q", c.id), c.want, func(p *place) {
			p.add(c.id, forge.Outputs{"gen/d.txt": "d"})
			p.sealDir = p.runDir(c.id + "2")
		})
	}
	return entries
}

// chainTreeRows are chains whose end is bad, or whose beginning would help it.
func chainTreeRows() []entry {
	ruined := func(p *place) {
		for i := range 5 {
			p.add(fmt.Sprint("more-", i), forge.Outputs{fmt.Sprint("more/", i): "x"})
		}
		p.replace(p.at("more/4"), file("y"))
	}
	return []entry{
		{85, "long chain", longChain, planned(accepted, accepted, accepted)},
		{86, "last output of the last bundle", ruined, planned(mismatch, strict, accepted)},
		{86, "signature of the last bundle", func(p *place) {
			p.add("run-2", forge.Outputs{"gen/d.txt": "d"})
			p.edit(func(r forge.Run) { r.SignPayload(forge.Key(2)) })
		}, planned("IDENTITY_MISMATCH", strict, accepted)},
		{86, "path of the last bundle", func(p *place) {
			p.addSigned("run-2", forge.Outputs{"../x": "d"})
			p.replace(p.top+"/x", file("d"))
		}, planned(missing, traversal, accepted)},
		{86, "directory of the last bundle is there", func(p *place) {
			p.add("run-2", forge.Outputs{"gen/d.txt": "d"})
			p.withRoot = true
			harness.Must(p, harness.Directory(p.atRoot("run-2")))
		}, planned(accepted, "RESTORE_CHAIN_TARGET_DIR_EXISTS", accepted)},
		{87, "a link for the second bundle to follow", func(p *place) {
			p.only(forge.Outputs{"a": "/etc", "b": "x"})
			p.replace(p.at("b"), file("x"))
			p.replace(p.at("a"), harness.LinkTo(p.outside))
			p.add("run-2", forge.Outputs{"gen/d.txt": "d"})
			p.sealArgs = []string{"a", "b"}
		}, planned(missing, strict, refusal)},
		{87, "a link inside for the second bundle to follow", func(p *place) {
			p.replace(p.at("gen/real"), file(content))
			p.replace(p.at("gen/c.txt"), harness.LinkTo("real"))
			p.add("run-2", forge.Outputs{"gen/d.txt": "d"})
		}, planned(accepted, irregular, refusal)},
		{87, "a link and what is below it in one bundle", func(p *place) {
			p.only(forge.Outputs{"a": "/etc", "a/b": "x"})
			p.replace(p.at("real/b"), file("x"))
			p.replace(p.at("a"), harness.LinkTo("real"))
			p.sealArgs = []string{"a", "a/b"}
		}, planned(missing, strict, refusal)},
	}
}

// longChain is a chain of many bundles, under a limit of descriptors.
func longChain(p *place) {
	for i := range sample.Of(100, 300, 10_000) - 1 {
		p.add(fmt.Sprintf("r%d", i), forge.Outputs{fmt.Sprintf("o/%d", i): fmt.Sprint(i)})
	}
	p.under = []string{"prlimit", "--nofile=64:64"}
}
