package report_test

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// The widths of a desktop, of a window beside another one, and of a phone, in CSS pixels.
const (
	desktop = 1280
	beside  = 1000
	phone   = 390
)

// TestPageInChromium: pages as a browser shows them, at each width and in both
// colour schemes, in the sample two of them. SPECTRUM_SCREENSHOTS names a directory for
// a person to look at.
func TestPageInChromium(t *testing.T) {
	c := newChromium(t)
	large := func(t *testing.T) *scene { return largeScene(t, 5000) }
	for _, shown := range sample.Pick(t, 2, []struct {
		name  string
		build func(t *testing.T) *scene
		width int
	}{
		{"small", smallScene, desktop}, {"small", smallScene, beside}, {"small", smallScene, phone},
		{"dense", denseScene, desktop}, {"dense", denseScene, phone},
		{"large", large, desktop}, {"large", large, phone},
	}) {
		t.Run(fmt.Sprint(shown.name, " ", shown.width), func(t *testing.T) {
			page := []byte(pageOf(t, shown.build(t).Preview()))
			if len(page) > 4<<20 {
				t.Errorf("%d bytes", len(page))
			}
			keep(t, shown.name+".html", page)
			checkWidth(t, c, page, shown.width)
			light := c.shot(t, shown.name, page, shown.width, "light")
			dark := c.shot(t, shown.name, page, shown.width, "dark")
			checkLook(t, light, dark)
		})
	}
}

// checkWidth requires that the page itself does not scroll sideways, folded or opened up, that
// nothing sticks out of it, and that no word in the head of a register is broken.
func checkWidth(t *testing.T, c *chromium, page []byte, width int) {
	t.Helper()
	for n, got := range c.measure(t, page, width) {
		if got.scroll > width || got.inner != width || got.outside != "" {
			t.Errorf("%d px, opened up %v: the page is %d px wide in a window of %d; outside: %s", width, n > 0, got.scroll, got.inner, got.outside)
		}
		if got.paper != "rgb(252, 251, 249)" || got.scripts != 1 {
			t.Errorf("the style is not applied, or there is another script than the one that copies: paper is %s, %d scripts", got.paper, got.scripts)
		}
	}
}

// checkLook requires two pictures that are not blank and differ as day and night, with text at
// the top and nothing at the edges.
func checkLook(t *testing.T, light, dark image.Image) {
	t.Helper()
	if l, d := brightness(light), brightness(dark); l < 200 || d > 80 {
		t.Errorf("brightness %d by day, %d by night", l, d)
	}
	for name, picture := range map[string]image.Image{"light": light, "dark": dark} {
		bounds := picture.Bounds()
		paper := picture.At(0, 0)
		top := image.Rect(0, 0, bounds.Dx(), 300)
		if n := inked(picture, top, paper); n < 2000 {
			t.Errorf("%s: %d inked pixels at the top", name, n)
		}
		edge := image.Rect(bounds.Dx()-8, 0, bounds.Dx(), bounds.Dy())
		if n := inked(picture, edge, paper); n > 0 {
			t.Errorf("%s: %d pixels at the right edge", name, n)
		}
	}
}

func brightness(picture image.Image) int {
	sum, n := 0, 0
	b := picture.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y += 3 {
		for x := b.Min.X; x < b.Max.X; x += 3 {
			sum += int(color.GrayModel.Convert(picture.At(x, y)).(color.Gray).Y)
			n++
		}
	}
	return sum / n
}

func inked(picture image.Image, where image.Rectangle, paper color.Color) int {
	n := 0
	for y := where.Min.Y; y < where.Max.Y; y++ {
		for x := where.Min.X; x < where.Max.X; x++ {
			if picture.At(x, y) != paper {
				n++
			}
		}
	}
	return n
}

// chromium runs a headless browser.
type chromium struct{ path string }

// newChromium finds it. Where CI_CHROMIUM=1 promises it, it is not missing.
func newChromium(t *testing.T) *chromium {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return &chromium{path}
		}
	}
	if os.Getenv("CI_CHROMIUM") == "1" {
		t.Fatal("there is no chromium, and CI_CHROMIUM=1 promises one")
	}
	t.Skip("there is no chromium")
	return nil
}

// run renders one file, with a profile of its own, and waits for the end.
func (c *chromium) run(t *testing.T, file, scheme string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	number := map[string]string{"dark": "0", "light": "1"}[scheme]
	short := harness.ShortDir(t) // it makes a socket there
	args = append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
		"--disable-background-networking", "--disable-breakpad", "--user-data-dir=" + t.TempDir(),
		"--blink-settings=preferredColorScheme=" + number,
	}, append(args, "file://"+file)...)
	command := exec.CommandContext(ctx, c.path, args...)
	command.Env = append(os.Environ(), "HOME="+t.TempDir(), "TMPDIR="+short, "DBUS_SESSION_BUS_ADDRESS=disabled:")
	command.WaitDelay = 10 * time.Second
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	defer func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }() // what it has left behind
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.Bytes())
	}
	return out
}

// framed is a document that holds the page in a frame of a width: a window
// cannot be had as narrow as a phone everywhere.
func framed(page []byte, width, height int, more string) []byte {
	return fmt.Appendf(nil, `<!doctype html><meta charset="utf-8"><style>body{margin:0}iframe{border:0;display:block}</style><iframe id="f" width="%d" height="%d" srcdoc="%s"></iframe>%s`,
		width, height, html.EscapeString(string(page)), more)
}

// shot takes a picture of the top of the page.
func (c *chromium) shot(t *testing.T, name string, page []byte, width int, scheme string) image.Image {
	t.Helper()
	const height = 2400
	dir := t.TempDir()
	file, out := filepath.Join(dir, "page.html"), filepath.Join(dir, "page.png")
	must(t, os.WriteFile(file, framed(page, width, height, ""), 0o600))
	c.run(t, file, scheme, "--screenshot="+out, fmt.Sprintf("--window-size=%d,%d", max(width, 600), height))
	raw, err := os.ReadFile(out)
	must(t, err)
	whole, err := png.Decode(bytes.NewReader(raw))
	must(t, err)
	cut := whole.(interface {
		SubImage(image.Rectangle) image.Image
	}).SubImage(image.Rect(0, 0, width, height))
	var b bytes.Buffer
	must(t, png.Encode(&b, cut))
	keep(t, fmt.Sprintf("%s-%d-%s.png", name, width, scheme), b.Bytes())
	return cut
}

// keep saves a page or a picture where a person can look at it.
func keep(t *testing.T, name string, content []byte) {
	t.Helper()
	if dir := os.Getenv("SPECTRUM_SCREENSHOTS"); dir != "" {
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
}

// measured is what a browser says of a page in a frame.
type measured struct {
	inner, scroll, scripts int
	paper                  string
	outside                string // the first that sticks out and that nothing around it scrolls
}

// ruler writes into the document around the frame: first of the page as it is,
// then of the page with everything opened up.
const ruler = `<p id="o"></p><script>
const f = document.getElementById("f"), o = document.getElementById("o");
f.onload = () => {
  const d = f.contentDocument, w = f.contentWindow;
  const boxed = e => {
    for (e = e.parentElement; e && e != d.body; e = e.parentElement) if (w.getComputedStyle(e).overflowX != "visible") return true;
    return false;
  };
  const look = () => {
    let out = "";
    for (const e of d.body.querySelectorAll("*")) {
      if (e.getBoundingClientRect().right > w.innerWidth + 0.5 && !boxed(e)) { out = e.tagName + "." + e.className; break; }
    }
    for (const e of d.body.querySelectorAll(".register thead th")) {
      if (w.getComputedStyle(e.closest("thead")).position == "absolute") continue;
      const word = d.createElement("span");
      Object.assign(word.style, {position: "absolute", width: "min-content", overflowWrap: "normal"});
      word.textContent = e.textContent;
      e.append(word);
      if (word.offsetWidth > e.clientWidth - parseFloat(w.getComputedStyle(e).paddingRight)) out = "of its column: " + word.textContent;
      word.remove();
    }
    o.textContent += ["M", w.innerWidth, d.documentElement.scrollWidth, d.scripts.length, w.getComputedStyle(d.body).backgroundColor, out, ""].join("|");
  };
  look();
  d.querySelectorAll("details").forEach(e => e.open = true);
  look();
  const buttons = d.querySelectorAll("button:not([hidden])");
  buttons.forEach(b => b.click());
  setTimeout(() => o.textContent += "B|" + [...buttons].map(b => b.textContent + "|").join("") + "E", 1000);
};
</script>`

var measure = regexp.MustCompile(`M\|(\d+)\|(\d+)\|(\d+)\|([^|<]*)\|([^|<]*)\|`)

var answered = regexp.MustCompile(`B\|((?:[^|]*\|)*)E`)

// measure measures the page twice, and requires its buttons to work.
func (c *chromium) measure(t *testing.T, page []byte, width int) [2]measured {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	must(t, os.WriteFile(file, framed(page, width, 900, ruler), 0o600))
	dom := c.run(t, file, "light", "--dump-dom", "--virtual-time-budget=20000", "--window-size=1300,900")
	_, dom, _ = bytes.Cut(dom, []byte(`<p id="o">`))
	found := measure.FindAllSubmatch(dom, -1)
	if len(found) != 2 {
		t.Fatalf("nothing was measured: %.500s", dom)
	}
	if answers := answered.FindSubmatch(dom); answers == nil || !regexp.MustCompile(`^((Copied|Selected: copy it with the keyboard)\|)*$`).Match(answers[1]) {
		t.Errorf("the buttons do not copy: %.300s", dom)
	} else if n, want := bytes.Count(answers[1], []byte("|")), bytes.Count(page, []byte("<button")); n != want {
		t.Errorf("%d of %d buttons are shown", n, want)
	}
	var all [2]measured
	for i, f := range found {
		n := func(at int) int { v, _ := strconv.Atoi(string(f[at])); return v }
		all[i] = measured{n(1), n(2), n(3), string(f[4]), string(f[5])}
	}
	return all
}

// smallScene is a restore of a few files with one conflict.
func smallScene(t *testing.T) *scene {
	s := bareScene(t)
	s.Named("atlas")
	readme := "# Atlas\n\nA map of what the nightly build has made.\n\n## Use\n\n    atlas serve --port 8080\n\nSee docs/ for more.\n"
	r := s.Add("run-2026-11-20", map[string]string{
		"README.md": readme, "docs/guide.md": strings.Repeat("guide\n", 300), "docs/limits.md": "none\n", "docs/decisions.md": "sqlite\n",
		"src/main.go": strings.Repeat("package main\n", 40), "src/serve/handler.go": strings.Repeat("x", 20000), "src/serve/handler_test.go": "package serve\n",
		"data/index.json": strings.Repeat("{}", 60000), "config/next.md": "ship it\n",
	})
	r.Edit(bundle.TaskSpec, func(f map[string]any) {
		f["constraints"] = map[string]any{"title": "Atlas after the nightly build", "agent_id": "builder-7", "project": "atlas", "version": "12",
			"restore_scopes": map[string]any{"docs/decisions.md": "decisions", "config/": "next_actions"}}
	})
	r.Sign()
	must(t, os.WriteFile(s.At("README.md"), []byte(strings.Replace(strings.Replace(readme, "8080", "9090", 1), "See docs/ for more.", "Ask Mira.\tSoon.", 1)), 0o644))
	must(t, os.MkdirAll(s.At("docs"), 0o755))
	must(t, os.WriteFile(s.At("docs/limits.md"), []byte("none\n"), 0o644))
	return s
}

// denseScene has much of everything: conflicts of many types, differences,
// quarantine, and long names without a space.
func denseScene(t *testing.T) *scene {
	s := bareScene(t)
	long := strings.Repeat("averylongnamewithoutanyspace", 8)
	outputs := map[string]string{".env": "KEY=1\n", "secrets/id_rsa": "x\n", "identity/me.md": "I am\n", long + "x": "x\n", "deep/" + strings.Repeat("d/", 60) + "leaf": "x\n"}
	current := map[string]string{".env": "KEY=2\n", long + "x": strings.Repeat("wide", 300) + "\n"}
	for n := range 70 {
		path := fmt.Sprintf("%s/%s-%02d.txt", long, long[:60], n)
		outputs[path] = strings.Repeat(fmt.Sprintf("line of %d\n", n), 30) + long + long + "\n"
		current[path] = strings.Repeat(fmt.Sprintf("line of %d\n", n), 30) + "short\n"
	}
	outputs["binary"], current["binary"] = "\x00\x01", "\x00\x02"
	outputs["huge"], current["huge"] = "x", strings.Repeat("h", 300000)
	r := s.Add("run-"+strings.Repeat("x", 200), outputs)
	r.Edit(bundle.TaskSpec, func(f map[string]any) {
		f["constraints"] = map[string]any{"title": strings.Repeat("T", 300), "agent_id": long, "artifact_status": "deprecated",
			"restore_scopes": map[string]any{"identity/": "same_agent_identity_layer", "nowhere/": "decisions"}}
	})
	r.Sign()
	s.Asked.Agent = "other"
	s.Asked.Scopes = []scope.Scope{scope.ProjectState, scope.RestrictedContext, scope.SameAgentIdentityLayer, scope.Decisions, scope.Constraints}
	for path, content := range current {
		must(t, os.MkdirAll(filepath.Dir(s.At(path)), 0o755))
		must(t, os.WriteFile(s.At(path), []byte(content), 0o644))
	}
	must(t, os.Mkdir(s.At("RESTORE_REPORT.json"), 0o755))
	return s
}

// largeScene has n outputs, some hundred in each of some directories.
func largeScene(t testing.TB, n int) *scene {
	s := bareScene(t)
	outputs := map[string]string{}
	for i := range n {
		outputs[fmt.Sprintf("module-%02d/package-%03d/source_file_%05d.go", i/2000, i/100, i)] = "x"
	}
	s.Add("run-1", outputs)
	for i := range 3 {
		path := s.At(fmt.Sprintf("module-01/package-020/source_file_%05d.go", 2000+i))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte("y\n"), 0o644))
	}
	return s
}
