package main

import (
	"errors"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

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
