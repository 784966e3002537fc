package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"pgregory.net/rapid"
)

func TestSplitOptions(t *testing.T) {
	for list, want := range map[string][]mountOption{
		"":                  nil,
		",,":                nil,
		"ro":                {{name: "ro"}},
		",ro,,rw,":          {{name: "ro"}, {name: "rw"}},
		"run=a":             {{"run", "a", true}},
		"run=":              {{"run", "", true}},
		"=":                 {{"", "", true}},
		"run=a=b":           {{"run", "a=b", true}},
		`run=a\,b,ro`:       {{"run", "a,b", true}, {name: "ro"}},
		`run=a\\,ro`:        {{"run", `a\`, true}, {name: "ro"}},
		`run=a\\\,ro`:       {{"run", `a\,ro`, true}},
		`run=a\b\`:          {{"run", `a\b\`, true}},
		`run= a b ,x-y=z\,`: {{"run", " a b ", true}, {"x-y", "z,", true}},
		`\,`:                {{name: ","}},
	} {
		if got := splitOptions(list); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", list, got, want)
		}
	}
}

// TestSplitOptionsEscaped: what is escaped comes out as it was, whatever it is.
func TestSplitOptionsEscaped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.StringOf(rapid.SampledFrom([]rune(`a,\= é`)))).Draw(t, "values")
		var list []string
		for _, value := range values {
			list = append(list, "run="+strings.NewReplacer(`\`, `\\`, ",", `\,`).Replace(value))
		}
		var got []string
		for _, option := range splitOptions(strings.Join(list, ",")) {
			got = append(got, option.value)
		}
		if !slices.Equal(got, values) {
			t.Errorf("%q became %q", values, got)
		}
	})
}

// settled is what a command line means.
func settled(t *testing.T, environment string, args ...string) (mountOptions, *app, []string, error) {
	t.Helper()
	t.Setenv("SPECTRUM_PROJECT_ROOT", environment)
	t.Setenv("SPECTRUM_STATE_DIR", environment)
	var opts mountOptions
	app := &app{}
	cmd := &cobra.Command{Use: "mount"}
	app.commonFlags(cmd)
	opts.addFlags(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	runDirs, err := opts.settle(cmd, app, cmd.Flags().Args())
	return opts, app, runDirs, err
}

// TestPrecedence: flag, then -o with the last of several, then environment; and
// paths are absolute.
func TestPrecedence(t *testing.T) {
	t.Chdir(t.TempDir())
	abs := func(path string) string {
		real, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		return real
	}
	for _, c := range []struct {
		args     string
		exec     bool
		root     string
		state    string
		runDirs  string
		readable bool
	}{
		{args: "r", root: abs("env"), state: abs("env"), runDirs: "r"},
		{args: "-o exec,project_root=o,state_dir=s,allow_other r", exec: true, root: abs("o"), state: abs("s"), runDirs: "r", readable: true},
		{args: "-o project_root=o -o project_root=/p,exec,noexec r", root: "/p", state: abs("env"), runDirs: "r"},
		{args: "-o noexec,exec,run=a -o run=b r q", exec: true, root: abs("env"), state: abs("env"), runDirs: "r q a b"},
		{args: "--project-root f --state-dir /g -o project_root=o,state_dir=s r", root: abs("f"), state: "/g", runDirs: "r"},
		{args: "-o allow_exec --allow-other=false -o allow_other r", exec: true, root: abs("env"), state: abs("env"), runDirs: "r"},
		{args: "--exec=false -o exec,allow_exec r", root: abs("env"), state: abs("env"), runDirs: "r"},
		{args: "--exec -o noexec r", exec: true, root: abs("env"), state: abs("env"), runDirs: "r"},
		{args: "--chain -o run=a", root: abs("env"), state: abs("env"), runDirs: "a"},
	} {
		opts, app, runDirs, err := settled(t, "env", strings.Fields(c.args)...)
		if err != nil || opts.exec != c.exec || opts.allowOther != c.readable || app.projectRoot != c.root || app.stateDir != c.state ||
			strings.Join(runDirs, " ") != c.runDirs {
			t.Errorf("%s: %+v, %q, %q, %q, %v", c.args, opts, app.projectRoot, app.stateDir, runDirs, err)
		}
	}
}

// TestGenericOptions: they change nothing, alone and all together.
func TestGenericOptions(t *testing.T) {
	plain, _, _, err := settled(t, "", "r")
	if err != nil {
		t.Fatal(err)
	}
	lists := []string{
		"rw,user=me,comment=a\\,b,x-systemd.requires=/y,X-mount.mkdir,x-initrd.mount",
		"defaults,auto,noauto,nofail,_netdev,users,owner,group,relatime,strictatime,sync,suid,dev",
	}
	for name := range genericOptions {
		lists = append(lists, name)
	}
	for _, list := range append(lists, strings.Join(lists, ",")) {
		opts, _, _, err := settled(t, "", "-o", list, "r")
		opts.listed = plain.listed
		if err != nil || !reflect.DeepEqual(opts, plain) {
			t.Errorf("%s: %+v, %v", list, opts, err)
		}
	}
}

// TestWrongOptions: each is an error of usage that names the option.
func TestWrongOptions(t *testing.T) {
	for _, option := range []string{
		"bogus", "bogus=1", "ro=1", "exec=1", "exec=", "all=true", "chain=r", "allow_other=", "run", "run=", "project_root", "state_dir=",
		"restore_root", "x", "", "nonempty", "allow-other", "EXEC", "nosymfollow", "daemon", "fsname=x", "uid=0", "remount",
	} {
		list := option
		if option == "" {
			list = "="
		}
		_, _, _, err := settled(t, "", "-o", "ro,"+list+",noauto", "r")
		name, _, _ := strings.Cut(option, "=")
		if name == "remount" {
			name = "a view cannot be remounted"
		} else {
			name = fmt.Sprintf("%q", name)
		}
		var use *usageError
		if !errors.As(err, &use) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", option, err)
		}
	}
}
