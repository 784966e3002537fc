package hostile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// TestHostile puts every tree of the table through all commands that look at a
// candidate or make one.
func TestHostile(t *testing.T) { play(t, sample.Every(t, 11), table()) }

// TestHostileAlike does the same with the trees of which there are thousands.
func TestHostileAlike(t *testing.T) { play(t, sample.Thin(t, 400, 13), alike()) }

// play plays these trees of a table.
func play(t *testing.T, stride sample.Stride, entries []entry) {
	t.Helper()
	// TestTableIsWhole has seen that an entry without a tree says why.
	entries = slices.DeleteFunc(entries, func(e entry) bool { return e.make == nil })
	// The rows come out of maps: the seed is to choose the same ones each time.
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.title(), b.title()) })
	if len(entries) < stride.Every {
		t.Fatalf("only %d trees", len(entries))
	}
	for i := 0; stride.At(i) <= len(entries); i++ {
		e := entries[stride.At(i)-1]
		t.Run(e.title(), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			e.make(p)
			p.play(e.want)
		})
	}
}

// play runs the commands in the order in which an operator would, seal last.
func (p *place) play(want verdicts) {
	p.Helper()
	before := processes(p, p.top) // looked at once: there are many on a machine
	defer func() {
		if left := processes(p, p.top); left != before {
			p.Errorf("a command leaves a process:\n%s\nbefore:\n%s", left, before)
		}
	}()
	p.verifies(want.verify)
	p.views(want.mount)
	p.looks(want.mount)
	id := p.previews(want.preview)
	p.commits(want.commit, id)
	p.seals(want.seal)
}

func nothing(string) bool { return false }

// step runs one command, and judges its answer and what it has left.
func (p *place) step(command string, want verdict, allowed func(path string) bool, run func() reply) (r reply, ok bool) {
	p.Helper()
	if want.isNone() {
		return r, false
	}
	after := func() {}
	if p.before != nil {
		after = p.before(command)
	}
	before := p.seen
	if before == nil {
		before = new(p.picture())
	}
	r = run()
	after()
	err := judge(want, r)
	if err != nil {
		p.Error(err)
	}
	now := p.picture()
	for _, change := range p.changes(*before, now, allowed) {
		p.Errorf("%s: %s", command, change)
	}
	if p.seen = &now; p.before != nil || p.check != nil {
		p.seen = nil // the entry itself may change something between two commands
	}
	if p.check != nil {
		p.check(command, r)
	}
	return r, err == nil && r.status == 0
}

func (p *place) verifies(want verdict) {
	p.Helper()
	r, ok := p.step("verify", want, nothing, func() reply { return p.run(p.args("verify", p.dirs...)...) })
	if !ok {
		return
	}
	var roots []string
	for _, run := range p.runs {
		roots = append(roots, run.Root())
	}
	if got := append(r.answer.Roots, r.answer.BundleRoot); !slices.Equal(slices.DeleteFunc(got, func(s string) bool { return s == "" }), roots) {
		p.Errorf("verify says the roots %q, they are %q", got, roots)
	}
}

// rootFlag names the restore root, if there is one.
func (p *place) rootFlag() []string {
	if p.rootArg == "" && !p.emptyRoot {
		return nil
	}
	return []string{"--restore-root", p.rootArg}
}

// views mounts, and looks at the view if there is one.
func (p *place) views(want verdict) {
	p.Helper()
	p.step("mount", want, nothing, func() reply {
		args := p.dirs
		if p.withRoot {
			args = append(p.rootFlag(), args...)
		}
		args = p.args("mount", append(slices.Clone(args), p.mountpoint)...)
		if p.faults != nil && p.faults("mount") != nil {
			return p.run(args...)
		}
		s := p.mount(p.mountpoint, args...)
		if s.view == "" {
			return s.reply
		}
		if want == accepted && p.inView != nil {
			p.inView(s.view)
		} else if want == accepted {
			got, err := contents(s.view)
			if d := difference(p.wanted(), got); d != "" || err != nil {
				p.Errorf("the view shows something else: %v\n%s", err, d)
			}
		}
		s.status = s.end()
		return s.reply
	})
}

// looks lists and compares without a mount, with the verdict of a mount. What a
// mount says of a restore root is not theirs, and neither are its faults.
func (p *place) looks(want verdict) {
	p.Helper()
	if p.withRoot || p.faults != nil || p.inView != nil {
		return
	}
	differs := want
	if want == accepted {
		differs = "ROOT_DIFFERS"
	}
	p.step("diff", differs, nothing, func() reply {
		return p.run(p.args("diff", append(slices.Clone(p.dirs), p.top+"/fresh")...)...)
	})
	r, ok := p.step("ls", want, nothing, func() reply { return p.run(p.args("ls", p.dirs...)...) })
	if !ok {
		return
	}
	var names []string
	for _, f := range r.answer.Files {
		names = append(names, f.Path)
	}
	if wanted := sorted(p.wanted()); !slices.Equal(names, wanted) {
		p.Errorf("ls lists %q, and not %q", names, wanted)
	}
}

// previews returns the id of the preview, if there is one.
func (p *place) previews(want verdict) (id string) {
	p.Helper()
	r, _ := p.step("preview", want, nothing, func() reply {
		return p.run(p.args("preview", append(p.rootFlag(), p.dirs...)...)...)
	})
	return r.answer.PreviewID
}

// commits carries the preview out, or requires the reason why there is none.
func (p *place) commits(want verdict, id string) {
	p.Helper()
	args := p.args("commit", append(p.rootFlag(), p.dirs...)...)
	if id != "" {
		args = harness.CommitArgs(id)
	}
	allowed := nothing
	if want == accepted || p.staged {
		below := p.below(p.root)
		allowed = func(path string) bool { return harness.Inside(path, below) }
	}
	before, files := p.rootNow(want)
	_, ok := p.step("commit", want, allowed, func() reply { return p.run(args...) })
	switch {
	case ok:
		for path, content := range p.wanted() {
			files[path] = content
		}
		got, err := contents(p.root)
		if d := difference(files, got); d != "" || err != nil {
			p.Errorf("the restore root is something else: %v\n%s", err, d)
		}
	case p.staged:
		now, err := take(p.root)
		harness.Must(p, err)
		if d := diff(before, now, func(path string) bool { return path == "." }); d != "" {
			p.Errorf("the rollback leaves something:\n%s", d)
		}
	}
}

// rootNow is what is in the restore root before a commit that needs to know.
func (p *place) rootNow(want verdict) (c census, files map[string]string) {
	p.Helper()
	var err error
	if p.staged {
		c, err = take(p.root)
		harness.Must(p, err)
	}
	if want == accepted {
		files, err = contents(p.root)
		harness.Must(p, err)
	}
	return c, files
}

// seals seals the same outputs. What it makes must be good for a restore.
func (p *place) seals(want verdict) {
	p.Helper()
	dir, allowed := p.sealDir, nothing
	if want == taken {
		dir = p.dirs[0]
	}
	if want == accepted {
		made := p.below(dir)
		allowed = func(path string) bool { return harness.Inside(path, made) || path == filepath.Dir(made) }
	}
	args := append([]string{"--key", p.key, "--run-dir", dir, "--"}, p.sealArgs...)
	if _, ok := p.step("seal", want, allowed, func() reply { return p.run(p.args("seal", args...)...) }); !ok {
		return
	}
	sealed := *p
	sealed.check, sealed.before, sealed.faults, sealed.under, sealed.chain = nil, nil, nil, nil, false
	sealed.step("verify", accepted, nothing, func() reply { return sealed.run(sealed.args("verify", dir)...) })
	r, ok := sealed.step("preview", accepted, nothing, func() reply {
		return sealed.run(sealed.args("preview", "--restore-root", p.top+"/fresh", dir)...)
	})
	if ok && len(r.answer.inTheWay()) > 0 {
		p.Errorf("what was sealed has conflicts: %v", r)
	}
}
