package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/test/plainjson"
	"github.com/spf13/cobra"
)

// FuzzMountOptions takes any list of mount options: it is taken apart as a
// regular expression takes it apart, and what a command line means by it is
// what its last options say, or an error of usage in one line.
func FuzzMountOptions(f *testing.F) {
	for _, list := range []string{
		"", ",,", "ro,exec,noexec,run=a", `run=a\,b\\,run=\`, "chain,all", "all,restore_root=/r", "project_root=p,project_root=/q/../r,state_dir=s", "x-a=b,X-c,comment=d,user=e",
		"exec=1", "run=", "=", "remount", "bogus", "allow_other,allow_exec,noexec", "state_dir=\x00\x1b[2J", "\x1b]0;x\x07", "run=\u202e,\xff",
	} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		want := plainOptions(list)
		if got := splitOptions(list); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %+v, want %+v", list, got, want)
		}
		checkSettled(t, list, want)
	})
}

var (
	optionPart = regexp.MustCompile(`(?s)(?:\\[,\\]|[^,])+`)
	unescape   = strings.NewReplacer(`\\`, `\`, `\,`, `,`)
)

// plainOptions takes a list apart.
func plainOptions(list string) (options []mountOption) {
	for _, part := range optionPart.FindAllString(list, -1) {
		var o mountOption
		o.name, o.value, o.valued = strings.Cut(unescape.Replace(part), "=")
		options = append(options, o)
	}
	return options
}

// checkSettled holds what a command line means against the last options of each
// kind.
func checkSettled(t *testing.T, list string, options []mountOption) {
	t.Helper()
	var opts mountOptions
	app, cmd := &app{}, &cobra.Command{Use: "mount"}
	app.commonFlags(cmd)
	opts.addFlags(cmd)
	if err := cmd.ParseFlags(nil); err != nil {
		t.Fatal(err)
	}
	opts.listed = []string{list}
	app.projectRoot, app.stateDir = "", ""
	runDirs, err := opts.settle(cmd, app, []string{"r"})
	if err != nil {
		var use *usageError
		if !errors.As(err, &use) || strings.ContainsFunc(err.Error(), func(c rune) bool { return !strconv.IsPrint(c) }) {
			t.Errorf("%q: %q", list, err)
		}
		return
	}
	want, wantApp, dirs := mountOptions{listed: opts.listed}, *app, []string{"r"}
	wantApp.projectRoot, wantApp.stateDir = "", ""
	for _, o := range options {
		switch o.name {
		case "exec", "allow_exec", "noexec":
			want.exec = o.name != "noexec"
		case "chain":
			want.chain = true
		case "all":
			want.all = true
		case "allow_other":
			want.allowOther = true
		case "run":
			dirs = append(dirs, o.value)
		case "restore_root":
			want.restoreRoot = o.value
		case "project_root":
			wantApp.projectRoot, _ = filepath.Abs(o.value)
		case "state_dir":
			wantApp.stateDir, _ = filepath.Abs(o.value)
		default:
			known := strings.HasPrefix(o.name, "x-") || strings.HasPrefix(o.name, "X-") || genericOptions[o.name]
			if !known || o.name == "remount" {
				t.Errorf("%q: option %q was taken", list, o.name)
			}
		}
	}
	if !reflect.DeepEqual(opts, want) || !slices.Equal(runDirs, dirs) || app.projectRoot != wantApp.projectRoot || app.stateDir != wantApp.stateDir {
		t.Errorf("%q: %+v, %q, %q, %q; want %+v, %q, %q, %q", list, opts, runDirs, app.projectRoot, app.stateDir, want, dirs, wantApp.projectRoot, wantApp.stateDir)
	}
	if want.all && (want.chain || len(dirs) != 1 || want.restoreRoot != "") {
		t.Errorf("%q does not go together, and was taken", list)
	}
}

// FuzzControl reads any bytes as what a view says of itself: there is an error,
// or they are read as a plain parser reads them. Nobody can say twice, or in
// other letters, whether a view was tampered with.
func FuzzControl(f *testing.F) {
	for _, text := range []string{
		`{"view_id":"v","tampered":true}`, `{"tampered":true,"tampered":false}`, `{"tampered":false,"t\u0061mpered":true}`, `{"Tampered":true}`, `{"tampered":1}`, `[]`, `null`, ``,
		`{"project_root":"/p","run_dirs":["/p/r"],"chain":true,"chain_root":"c","runs":[{"bundle_root":"b"}],"unsigned_artifacts":["PROOF.json"]}`,
		`{"runs":[{"bundle_root":"b"},{"bundle_root":"b","bundle_root":"c"}]}`, `{"run_dirs":["\ud800"]}`, "{\"view_id\":\"\xff\"}", `{"tampered":null}`, `{"runs":null}`, `{} {}`,
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	if err := os.Mkdir(filepath.Join(dir, fusefs.ControlName), 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, fusefs.ControlName, statusFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		tree, plainErr := plainjson.Parse(text)
		object, isObject := tree.(map[string]any)
		var status statusRecord
		var shown candidateRecord
		errStatus, errShown := readControl(dir, statusFile, &status), readControl(dir, statusFile, &shown)
		if errStatus == nil || errShown == nil {
			checkBelieved(t, text, plainErr)
		}
		if plainErr != nil || !isObject {
			return
		}
		if said := object["tampered"]; errStatus == nil && (status.Tampered != (said == true) || said != nil && said != false && said != true) {
			t.Errorf("%q was read as tampered: %v", text, status.Tampered)
		}
		if errStatus == nil && !sameText(status.ViewID, object["view_id"]) {
			t.Errorf("%q was read as of view %q", text, status.ViewID)
		}
		if errShown == nil {
			checkShownAs(t, text, &shown, object)
		}
	})
}

var (
	deepText = regexp.MustCompile(`(?s)^(?:[^\[{]*[\[{]){513}`)
	longText = regexp.MustCompile(`[0-9][eE][+-]?[0-9]`)
)

// checkBelieved: what was believed is JSON, but for what only decision D6
// refuses.
func checkBelieved(t *testing.T, text []byte, plainErr error) {
	t.Helper()
	if plainErr != nil && !deepText.Match(text) && !longText.Match(text) {
		t.Errorf("%q was believed: %v", text, plainErr)
	}
}

func sameText(got string, said any) bool { return said == nil && got == "" || said == got }

func checkShownAs(t *testing.T, text []byte, shown *candidateRecord, object map[string]any) {
	t.Helper()
	dirs, _ := object["run_dirs"].([]any)
	runs, _ := object["runs"].([]any)
	ok := sameText(shown.ProjectRoot, object["project_root"]) && len(dirs) == len(shown.RunDirs) && len(runs) == len(shown.Runs)
	for i := range dirs {
		ok = ok && sameText(shown.RunDirs[i], dirs[i])
	}
	for i := range runs {
		run, _ := runs[i].(map[string]any)
		ok = ok && sameText(shown.Runs[i].BundleRoot, run["bundle_root"])
	}
	if !ok {
		t.Errorf("%q was read as %+v", text, *shown)
	}
}
