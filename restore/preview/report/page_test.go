package report_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

func pageOf(t testing.TB, p *preview.Preview) string {
	t.Helper()
	var b strings.Builder
	must(t, report.Of(p).WritePage(t.Context(), &b, "spectrum commit --preview 01234567 --approve 'Approved: <so>.'", 0))
	checkPage(t, b.String())
	return b.String()
}

// pieces are what a page is made of: text, and tags as they are written.
func pieces(page string) (all []string) {
	for page != "" {
		n := strings.IndexByte(page, '<')
		switch n {
		case -1:
			n = len(page)
		case 0:
			n = max(1, strings.IndexByte(page, '>')+1)
		}
		all, page = append(all, page[:n]), page[n:]
	}
	return all
}

// tag is what a tag of a page looks like, and no other: names in lower case,
// values in double quotes.
var tag = regexp.MustCompile(`^<(/?)([a-z][a-z0-9]*)((?: [a-z-]+(?:="[^"<>]*")?)*)>$`)

var attribute = regexp.MustCompile(` ([a-z-]+)(?:="([^"<>]*)")?`)

// known are the elements of a page, and their attributes.
var known = func() map[string]string {
	all := map[string]string{
		"html": "lang", "meta": "charset http-equiv content name", "details": "class open", "a": "href", "nav": "aria-label",
		"div": "class tabindex role aria-label", "section": "class aria-labelledby", "h2": "id", "h3": "id", "p": "class id aria-hidden",
		"pre": "class id tabindex role aria-label", "span": "class", "table": "class", "th": "scope", "td": "data-l", "li": "class",
		"header": "class", "dl": "class", "button": "type data-copies hidden", "del": "class", "ins": "class",
	}
	for _, name := range strings.Fields("head title style body h1 code bdi dt dd small b i mark main footer caption thead tbody tr summary ul") {
		all[name] = ""
	}
	return all
}()

// checkPage holds what is so of every page: the elements and attributes that are
// known and no others, no address but that of a place in it that exists, the one
// style and the one script at its end that its policy allows, every character one that can be seen, the ten
// sections with what matters first.
func checkPage(t testing.TB, page string) {
	t.Helper()
	if !strings.HasPrefix(page, "<!doctype html>\n<html lang=\"en\">\n") {
		t.Fatalf("it begins with %.60q", page)
	}
	head, body, ok := strings.Cut(strings.TrimPrefix(page, "<!doctype html>\n"), "</style>")
	before, style, styled := strings.Cut(head, "<style>")
	if !ok || !styled {
		t.Fatal("there is no style")
	}
	body, script, scripted := strings.Cut(body, "<script>")
	script, end, ends := strings.Cut(script, "</script>")
	if !scripted || !ends || end != "\n</body>\n</html>\n" && end != "\n</body>\n</html>" {
		t.Errorf("there is no script at the end, but %.100q", end)
	}
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	if policy := "default-src 'none'; style-src " + hash(style) + "; script-src " + hash(script) + "; base-uri"; !strings.Contains(before, policy) {
		t.Errorf("the policy is not %s in %s", policy, before)
	}
	if strings.Contains(script, "innerHTML") || strings.Contains(script, "fetch") || strings.Contains(script, "://") {
		t.Error("the script does more than to copy")
	}
	if strings.ContainsAny(style, "<@\\") && strings.Contains(style, "@import") || strings.Contains(style, "url(") {
		t.Error("the style has an address")
	}
	places, links := map[string]int{}, map[string]bool{}
	checked := map[string]bool{} // tags without a place or a link
	for _, piece := range pieces(before + "<style></style>" + body) {
		if piece[0] != '<' {
			checkText(t, piece)
			continue
		}
		if checked[piece] {
			continue
		}
		parts := tag.FindStringSubmatch(piece)
		if parts == nil {
			t.Fatalf("what is %.200q", piece)
		}
		allowed, ok := known[parts[2]]
		if !ok {
			t.Fatalf("an element that is not known: %s", piece)
		}
		checked[piece] = true
		for _, a := range attribute.FindAllStringSubmatch(parts[3], -1) {
			if !strings.Contains(" "+allowed+" ", " "+a[1]+" ") {
				t.Fatalf("an attribute that is not known: %s", piece)
			}
			switch a[1] {
			case "id":
				places[a[2]]++
				checked[piece] = false
			case "href", "aria-labelledby", "data-copies":
				links[strings.TrimPrefix(a[2], "#")] = true
				if a[1] == "href" && !strings.HasPrefix(a[2], "#") {
					t.Errorf("an address: %s", piece)
				}
			}
		}
	}
	for link := range links {
		if places[link] != 1 {
			t.Errorf("%d places are #%s", places[link], link)
		}
	}
	checkSections(t, body)
}

func checkText(t testing.TB, text string) {
	t.Helper()
	for _, r := range html.UnescapeString(text) {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Fatalf("%U is on the page: %.200q", r, text)
		}
	}
	if strings.Contains(text, ">") {
		t.Fatalf("markup in %q", text)
	}
}

var heading = regexp.MustCompile(`<h2 id="([a-z0-9]+)">`)

func checkSections(t testing.TB, body string) {
	t.Helper()
	var got []string
	for _, h := range heading.FindAllStringSubmatch(body, -1) {
		got = append(got, h[1])
	}
	want := "s6 s3 s4 s5 s1 s2 s7 s8 s9 s10"
	if all := strings.TrimPrefix(strings.Join(got, " "), "quarantine "); all != want || strings.Count(body, "<h1>") != 1 {
		t.Errorf("sections %s", all)
	}
}

// skeleton is a page without its text: tags only.
func skeleton(page string) string {
	var b strings.Builder
	for _, piece := range pieces(page) {
		if piece[0] == '<' && piece != "<mark>" && piece != "</mark>" {
			b.WriteString(piece + "\n")
		}
	}
	return b.String()
}

// harmless is a name of the same components.
func harmless(name string) string { return regexp.MustCompile(`[^/]+`).ReplaceAllString(name, "h") }

// TestPageHostileNames: none becomes an element, an attribute, an address, or a
// character that hides or reorders others: beside the page of a harmless name
// in its place every page has the same tags.
func TestPageHostileNames(t *testing.T) {
	names := append([]string{
		"</style><script>alert(1)</script>", "</title>", "]]>", "--><script>", `" onload="x`, "' onload='x", "javascript:alert(1)",
		"{{.ID}}", "POLICY", "<img src=x onerror=alert(1)>", "</pre></details>", "</bdi>", "\u05d0\u05d1.exe", "\u2067x", "a\u00a0b", " ", "&lt;script&gt;",
	}, hostileNames...)
	wanted := map[string]string{}
	for _, name := range sample.Pick(t, 10, names) {
		other := harmless(name)
		if wanted[other] == "" {
			wanted[other] = skeleton(pageOf(t, hostileScene(t, other)))
		}
		if d := cmp.Diff(wanted[other], skeleton(pageOf(t, hostileScene(t, name)))); d != "" {
			t.Errorf("%q: other tags than those of a harmless name (-want +got):\n%s", name, d)
		}
	}
}

// hostileScene has a name wherever a page shows one.
func hostileScene(t testing.TB, name string) *preview.Preview {
	s := bareScene(t)
	s.Named(name)
	s.Origin.ProjectRoot += name
	s.Asked.Agent = name
	line := strings.ReplaceAll(name, "\n", "\r") // a line more would be a line more
	r := s.Add("run-"+strings.ReplaceAll(name, "/", "_"), map[string]string{
		"d/" + name: "x", "differs/" + name: line + "\nnew" + line, "deep/" + name + "/" + name: "x", "id/" + name: "x",
	})
	r.Edit(bundle.TaskSpec, func(f map[string]any) {
		constraints := map[string]any{"restore_scopes": map[string]any{"id/": "same_agent_identity_layer", "nowhere/": "decisions"}}
		for _, field := range []string{"title", "parent_savepoint_id", "agent_id", "receiving_agent_id", "project", "version", "artifact_status", "transfer_mode", "privacy_level"} {
			constraints[field] = name + "x"
		}
		f["constraints"] = constraints
	})
	r.Sign()
	must(t, os.MkdirAll(filepath.Dir(s.At("differs/"+name)), 0o755))
	must(t, os.WriteFile(s.At("differs/"+name), []byte(line+"\nold"+line), 0o644))
	return s.Preview()
}

// TestPageShowsNames checks that the page shows escaped names.
func TestPageShowsNames(t *testing.T) {
	page := pageOf(t, hostileScene(t, "\u202egpj.exe"))
	if n := strings.Count(page, `\u202egpj.exe`); n < 15 {
		t.Errorf("it is shown %d times", n)
	}
	if !strings.Contains(page, `<span class="del">-old<mark>\u202e</mark>gpj.exe`) {
		t.Error("it is not in the difference")
	}
}

// TestPageIsTheSame checks that equal previews have equal pages.
func TestPageIsTheSame(t *testing.T) {
	s := diffScene(t, "old\n", "new\n")
	p := s.Preview()
	first := pageOf(t, p)
	if pageOf(t, p) != first || pageOf(t, s.Preview()) != first {
		t.Error("another page of the same preview")
	}
	if !strings.Contains(first, p.ID()) || !strings.Contains(first, p.Recommended()) {
		t.Error("it does not say what to approve")
	}
}

func diffScene(t testing.TB, current, candidate string) *scene {
	t.Helper()
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": candidate, "b": "b"})
	must(t, os.WriteFile(s.At("a"), []byte(current), 0o644))
	return s
}

// TestPageDifferences checks the difference of each kind of file on the page.
func TestPageDifferences(t *testing.T) {
	digest := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	lines := func(n int, text string) string { return strings.Repeat(text+"\n", n) }
	for _, c := range []struct {
		name, current, candidate string
		want                     []string
	}{
		{"line", "a\nb\nc\n", "a\nB\nc\n", []string{"\n<", `"same"> a`, `"del">-b`, `"add">+B`, "+1 −1"}},
		{"no newline", "a\n", "a", []string{`"del">-a`, `"add">+a`, `"note">\ No newline at end of file`}},
		{"crlf", "a\r\n", "a\n", []string{`-a<mark>\r</mark>`, `"add">+a` + "\n"}},
		{"looks like a head", "-- x\n++ y\n", "@@ 1\n\\ z\n", []string{`"del">--- x`, `"del">-++ y`, `"add">+@@ 1`, `"add">+\ z`}},
		{"tab", "\ta\n", "    a\n", []string{"\"del\">-\ta", `"add">+    a`}},
		{"empty", "", "a\n", []string{`"add">+a`, "+1 −0"}},
		{"emptied", "a\n", "", []string{`"del">-a`, "+0 −1"}},
		{"escape", "a\x1b[2J\n", "a\\x1b[2J\n", []string{`-a<mark>\x1b</mark>[2J`, `+a\x1b[2J`}},
		{"binary", "a\x00b", "a\n", []string{"binary: current state 3 bytes, candidate 2 bytes; sha256 " + digest("a\x00b") + ", " + digest("a\n")}},
		{"binary candidate", "a\n", "\xff\xfe", []string{"binary: current state 2 bytes, candidate 2 bytes; sha256 " + digest("a\n") + ", " + digest("\xff\xfe")}},
		{"long line", "a\n", strings.Repeat("é", 501) + "\n", []string{"+" + strings.Repeat("é", 500) + "<i> … 1 more characters</i>"}},
		{"largest", lines(1<<17, "x"), "x\n", []string{"+0 −131071", "129073 more lines are left out"}},
		{"too large", lines(1<<17, "x") + "y", "x\n", []string{"too large to compare here, the limit is 256.0 KiB: current state 256.0 KiB, candidate 2 bytes"}},
		{"too large a candidate", "x", lines(1<<17, "x") + "y", []string{"too large to compare here"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			page := html.UnescapeString(pageOf(t, diffScene(t, c.current, c.candidate).Preview()))
			for _, want := range c.want {
				if !strings.Contains(page, want) {
					_, page, _ := strings.Cut(page, `id="diffs"`)
					t.Errorf("no %q in\n%.3000s", want, page)
				}
			}
			if n := strings.Count(page, `<span class="`); n > 2000+20 {
				t.Errorf("%d lines", n)
			}
		})
	}
}

// TestPageOfEscapes: a difference that is nothing but what cannot be seen takes
// no more room than there is.
func TestPageOfEscapes(t *testing.T) {
	hidden := strings.Repeat(strings.Repeat("\u202e", 480)+"\n", 170)
	page := pageOf(t, diffScene(t, hidden, "a\n").Preview())
	if len(page) > 1<<20 || !strings.Contains(page, "more lines are left out") {
		t.Errorf("%d bytes", len(page))
	}
}

// TestPageManyDifferences: fifty are shown line by line, and it says how many are
// not.
func TestPageManyDifferences(t *testing.T) {
	s := bareScene(t)
	outputs := map[string]string{}
	for n := range 53 {
		path := fmt.Sprintf("%02d", n)
		outputs[path] = "new\n"
		must(t, os.WriteFile(s.At(path), []byte("old\n"), 0o644))
	}
	s.Add("run-1", outputs)
	page := pageOf(t, s.Preview())
	if n := strings.Count(page, `<details class="diff"`); n != 50 || !strings.Contains(page, "3 more files that are new or differ are not shown here") {
		t.Errorf("%d differences", n)
	}
	if n := strings.Count(page, `<th scope="row">C-`) - 2; n != 54 { // two rows of section 9
		t.Errorf("%d conflicts", n)
	}
}

// TestPageOtherTargets: a target that is not a regular file is not read.
func TestPageOtherTargets(t *testing.T) {
	for name, c := range map[string]struct {
		put  func(path string) error
		want string
	}{
		"directory":  {func(path string) error { return os.Mkdir(path, 0o755) }, "no text: the existing file is not a regular file"},
		"link":       {func(path string) error { return os.Symlink("other", path) }, `"del">-other`},
		"no reader":  {func(path string) error { return unix.Mkfifo(path, 0o600) }, "no text: the existing file is not a regular file"},
		"the same":   {func(path string) error { return os.WriteFile(path, []byte("new\n"), 0o600) }, "Nothing to compare"},
		"link to it": {func(path string) error { return os.Link(filepath.Dir(path)+"/other", path) }, `"del">-other`},
	} {
		t.Run(name, func(t *testing.T) {
			s := bareScene(t)
			s.Add("run-1", map[string]string{"a": "new\n"})
			must(t, os.WriteFile(s.At("other"), []byte("other\n"), 0o644))
			must(t, c.put(s.At("a")))
			if page := pageOf(t, s.Preview()); !strings.Contains(page, c.want) {
				t.Errorf("no %q", c.want)
			}
		})
	}
}

// TestPageHidesSecrets: nothing of restricted context is read or shown, on
// neither side, though it was asked for; and nothing that is not proposed.
func TestPageHidesSecrets(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{".env": "KEY=candidate\n", "notes": "candidate\n"})
	for _, path := range []string{".env", "notes"} {
		must(t, os.WriteFile(s.At(path), []byte("KEY=current\n"), 0o644))
	}
	s.Asked.Scopes = []scope.Scope{scope.RestrictedContext}
	page := pageOf(t, s.Preview())
	if strings.Contains(page, "KEY=") || strings.Contains(page, ">+candidate") || !strings.Contains(page, "not shown: it is restricted context") {
		t.Errorf("a secret is on the page\n%s", page)
	}
}

// TestPageShowsNewFiles: the text of a new file is on the page, folded, behind what differs; not that
// of one that may hold a secret.
func TestPageShowsNewFiles(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{".env": "KEY=candidate\n", "a new": "first\u202e\n<b>\n", "binary": "\x00", "empty": "", "large": strings.Repeat("x", 1<<18+1), "there": "candidate\n"})
	must(t, os.WriteFile(s.At("there"), []byte("current\n"), 0o644))
	s.Asked.Scopes = []scope.Scope{scope.ProjectState, scope.RestrictedContext}
	page := html.UnescapeString(pageOf(t, s.Preview()))
	_, page, _ = strings.Cut(page, `id="diffs"`)
	page, _, _ = strings.Cut(page, "</section>")
	for _, want := range []string{`"add">+first<mark>\u202e</mark>`, `"add">+<b>`, "+2 −0", "new, binary: candidate 1 byte, sha256 " + fmt.Sprintf("%x", sha256.Sum256([]byte{0})), "new, too large to show here, the limit is 256.0 KiB: candidate 256.0 KiB", "+0 −0"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%.4000s", want, page)
		}
	}
	if strings.Contains(page, "KEY=") || strings.Count(page, `<details class="diff" open>`) != 1 || strings.Index(page, "-current") > strings.Index(page, "+first") {
		t.Errorf("%.4000s", page)
	}
}

// TestPageOfTamperedSource: what is not what was signed is an error, and then
// there is no page.
func TestPageOfTamperedSource(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"changed": func(path string) error { return os.WriteFile(path, []byte("NEW\n"), 0o644) },
		"shorter": func(path string) error { return os.WriteFile(path, []byte("new"), 0o644) },
		"gone":    os.Remove,
	} {
		s := diffScene(t, "old\n", "new\n")
		p := s.Preview()
		must(t, change(filepath.Join(s.Root, "a")))
		var b bytes.Buffer
		err := report.Of(p).WritePage(t.Context(), &b, "", 0)
		var mismatch *blockhash.MismatchError
		if err == nil || b.Len() > 0 || name == "changed" && !errors.As(err, &mismatch) {
			t.Errorf("%s: %v, %d bytes", name, err, b.Len())
		}
	}
}

// TestPageOfAnotherState checks that there is no page if the restore root changed.
func TestPageOfAnotherState(t *testing.T) {
	s := diffScene(t, "old\n", "new\n")
	p := s.Preview()
	must(t, os.WriteFile(s.At("a"), []byte("OLD\n"), 0o644))
	var b bytes.Buffer
	if err := report.Of(p).WritePage(t.Context(), &b, "", 0); !errors.Is(err, preview.ErrUnsettled) || b.Len() > 0 {
		t.Errorf("%v, %d bytes", err, b.Len())
	}
}

func TestPageCancelled(t *testing.T) {
	for _, current := range []string{"old\n", "new\n"} {
		p := diffScene(t, current, "new\n").Preview()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var b bytes.Buffer
		if err := report.Of(p).WritePage(ctx, &b, "", 0); !errors.Is(err, context.Canceled) || b.Len() > 0 {
			t.Errorf("%v, %d bytes", err, b.Len())
		}
	}
}

// TestPageCannotBeWritten checks that the page is written at once, and that an error is returned.
func TestPageCannotBeWritten(t *testing.T) {
	p := newScene(t).Preview()
	w := &failingWriter{}
	if err := report.Of(p).WritePage(t.Context(), w, "", 0); !errors.Is(err, errFull) || w.after > 0 {
		t.Errorf("%v, then %d more", err, w.after)
	}
	must(t, report.Of(p).WritePage(t.Context(), &failingWriter{left: 1}, "", 0))
}

// TestPageVerdicts checks the verdict at the top of the page.
func TestPageVerdicts(t *testing.T) {
	taken := func(s *scene, paths ...string) {
		for _, path := range paths {
			must(t, os.WriteFile(s.At(path), []byte("old"), 0o644))
		}
	}
	for _, c := range []struct {
		state, want string
		put         func(s *scene)
	}{
		{"free", "Nothing is in the way of 2 proposed files.", func(*scene) {}},
		{"free", "Nothing is in the way of 2 proposed files: 1 to restore, 1 there already.", func(s *scene) {
			s.Asked.Replace = true
			must(t, os.WriteFile(s.At("a"), []byte("a"), 0o644))
		}},
		{"part", "1 of 2 proposed files can be restored. Something is in the way of 1.", func(s *scene) { taken(s, "a") }},
		{"nothing", "Nothing can be restored as things stand.", func(s *scene) { taken(s, "a", "b") }},
		{"nothing", "Nothing can be restored as things stand. RESTORE_MANIFEST.json or RESTORE_REPORT.json already exists", func(s *scene) { taken(s, "RESTORE_REPORT.json") }},
		{"nothing", "Nothing is proposed.", func(s *scene) { s.Asked.Scopes = []scope.Scope{scope.Decisions} }},
		{"quarantined", "Do not commit.", func(s *scene) {
			s.Runs[0].Edit(bundle.TaskSpec, func(f map[string]any) { f["constraints"] = map[string]any{"artifact_status": "rejected"} })
			s.Runs[0].Sign()
		}},
	} {
		s := bareScene(t)
		s.Add("run-1", map[string]string{"a": "a", "b": "b"})
		c.put(s)
		page := pageOf(t, s.Preview())
		if !strings.Contains(page, `<header class="`+c.state+`">`) || !regexp.MustCompile(`<p class="verdict">[A-Z ]+: `+regexp.QuoteMeta(c.want)).MatchString(page) {
			t.Errorf("%s: not %q in %.400s", c.state, c.want, page[strings.Index(page, "<header"):])
		}
		if strings.Contains(page, `<h2 id="quarantine">`) != (c.state == "quarantined") {
			t.Errorf("%s: quarantine", c.state)
		}
	}
}

// TestPageDeepPath checks the limit of nested directories.
func TestPageDeepPath(t *testing.T) {
	s := bareScene(t)
	deep := strings.Repeat("d/", 1500)
	outputs := map[string]string{deep + "leaf": "x"}
	for n := 1; n < 80; n++ {
		outputs[deep[:2*n]+"file"] = "x"
	}
	s.Add("run-1", outputs)
	page := pageOf(t, s.Preview())
	if depth := nesting(page); depth < 20 || depth > 32 {
		t.Errorf("%d details in one another", depth)
	}
	if !strings.Contains(page, strings.Repeat("d/", 1460)+"leaf") {
		t.Error("the leaf is missing")
	}
}

func nesting(page string) int {
	deepest, depth := 0, 0
	for _, piece := range pieces(page) {
		switch {
		case strings.HasPrefix(piece, "<details"):
			depth++
			deepest = max(deepest, depth)
		case piece == "</details>":
			depth--
		}
	}
	return deepest
}

// TestLargePage: of twenty thousand items, in the sample fewer, and it stays small.
func TestLargePage(t *testing.T) {
	items := sample.Of(4000, 20000, 20000)
	page := pageOf(t, largeScene(t, items).Preview())
	if n := strings.Count(page, `<li class="f">`); len(page) > 4<<20 || n < items/2 {
		t.Errorf("%d bytes, %d files", len(page), n)
	}
	t.Logf("%d bytes, %d files", len(page), strings.Count(page, `<li class="f">`))
}

func BenchmarkPage(b *testing.B) {
	p := largeScene(b, 20000).Preview()
	for b.Loop() {
		var page bytes.Buffer
		must(b, report.Of(p).WritePage(b.Context(), &page, "", 0))
		b.SetBytes(int64(page.Len()))
	}
}

// TestPageFree: the page has the bytes that are free, as the summary has, where they are known.
func TestPageFree(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": "1"})
	p := s.Preview()
	for free, want := range map[uint64]string{0: "<dd>1 byte to write</dd>", 3 << 30: "<dd>1 byte to write, 3.0 GiB free</dd>"} {
		var page strings.Builder
		must(t, report.Of(p).WritePage(t.Context(), &page, "", free))
		if !strings.Contains(page.String(), want) {
			t.Errorf("%d free: no %q", free, want)
		}
	}
}
