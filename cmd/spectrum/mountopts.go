package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// mountOptions are the settings of a view on the command line.
type mountOptions struct {
	chain       bool
	all         bool
	lazy        bool
	restoreRoot string
	daemon      bool
	allowOther  bool
	exec        bool
	listed      []string // the values of -o

	// Of the mount(8) helper only.
	source    string // what the mount table shows; "" is the program's own name
	namespace string // the mount namespace to mount in; "" is this one
	sloppy    bool   // unknown options are not errors
}

// addFlags defines the flags of a command that mounts.
func (o *mountOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	addChain(cmd, &o.chain)
	flags.BoolVar(&o.all, "all", false, "show all runs in the one directory that is given")
	addLazy(cmd, &o.lazy)
	flags.StringVar(&o.restoreRoot, "restore-root", "", "`directory` that a restore would go to; the view must not be mounted there")
	flags.BoolVar(&o.daemon, "daemon", false, "serve the view in the background; return when it is ready")
	flags.BoolVar(&o.allowOther, "allow-other", false, "let other users read the view, subject to its permission bits")
	flags.BoolVar(&o.exec, "exec", false, "allow programs to be executed from the view")
	flags.StringArrayVarP(&o.listed, "options", "o", nil, "a `list` of mount options as in fstab: allow_other, exec, chain, all, lazy, run=DIR, project_root=DIR, state_dir=DIR, restore_root=DIR")
}

// mountOption is one option of a list as in fstab.
type mountOption struct {
	name, value string
	valued      bool // there was a "="
}

// flagOptions are the options that set a flag, which overrides them. Those without a value take the
// next one.
var flagOptions = map[string]struct{ flag, value string }{
	"allow_other":  {"allow-other", "true"},
	"allow_exec":   {"exec", "true"}, // mount(8) does not hand on exec: for it that is the default
	"exec":         {"exec", "true"},
	"noexec":       {"exec", "false"},
	"chain":        {"chain", "true"},
	"all":          {"all", "true"},
	"lazy":         {"lazy", "true"},
	"project_root": {"project-root", ""},
	"state_dir":    {"state-dir", ""},
	"restore_root": {"restore-root", ""},
}

// runOption names a further run directory of a chain.
const runOption = "run"

// genericOptions are those of every file system. mount(8) deals with some, and
// the others cannot be had: a view is read-only, nosuid and nodev in any case,
// and nothing in it changes when it is looked at.
var genericOptions = setOf(
	"ro", "rw", "defaults", "auto", "noauto", "nofail", "_netdev", "user", "nouser", "users", "nousers", "owner", "noowner", "group", "nogroup",
	"atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime", "strictatime", "nostrictatime", "lazytime", "nolazytime",
	"sync", "async", "dirsync", "suid", "nosuid", "dev", "nodev", "mand", "nomand", "iversion", "noiversion", "silent", "loud",
	"default_permissions", "comment",
)

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// isGeneric: user and comment have a value at times, and so may the options of
// the namespace that is left to programs which read fstab.
func (o mountOption) isGeneric() bool {
	if strings.HasPrefix(o.name, "x-") || strings.HasPrefix(o.name, "X-") {
		return true
	}
	return genericOptions[o.name] && (!o.valued || o.name == "user" || o.name == "comment")
}

// splitOptions splits a list at its commas. A backslash escapes a comma or a backslash of a value.
func splitOptions(list string) (options []mountOption) {
	var part strings.Builder
	flush := func() {
		if part.Len() > 0 {
			var o mountOption
			o.name, o.value, o.valued = strings.Cut(part.String(), "=")
			options = append(options, o)
		}
		part.Reset()
	}
	for i := 0; i < len(list); i++ {
		escape := list[i] == '\\' && i+1 < len(list) && (list[i+1] == ',' || list[i+1] == '\\')
		switch {
		case escape:
			i++
			part.WriteByte(list[i])
		case list[i] == ',':
			flush()
		default:
			part.WriteByte(list[i])
		}
	}
	flush()
	return options
}

// settle applies the options of -o, checks that all settings fit together, and returns the run
// directories with those of -o. Paths are made absolute, because a view in the background leaves
// the working directory; the restore root is not, because the law requires an absolute path.
func (o *mountOptions) settle(cmd *cobra.Command, app *app, runDirs []string) ([]string, error) {
	var added []string
	for _, list := range o.listed {
		for _, option := range splitOptions(list) {
			if option.name == runOption && option.value != "" {
				added = append(added, option.value)
			} else if err := o.apply(cmd, option); err != nil {
				return nil, usage(cmd, "%w", err)
			}
		}
	}
	runDirs = append(runDirs[:len(runDirs):len(runDirs)], added...)
	if err := o.check(runDirs); err != nil {
		return nil, usage(cmd, "%w", err)
	}
	return runDirs, makeAbsolute(&app.projectRoot, &app.stateDir)
}

// apply applies one option, unless a flag has set it.
func (o *mountOptions) apply(cmd *cobra.Command, option mountOption) error {
	known, ok := flagOptions[option.name]
	takesValue := ok && known.value == "" || option.name == runOption
	switch {
	case takesValue && option.value == "":
		return fmt.Errorf("mount option %q needs a value: %s=DIR", option.name, option.name)
	case ok && !takesValue && option.valued:
		return fmt.Errorf("mount option %q takes no value", option.name)
	case option.name == "remount":
		return errors.New("a view cannot be remounted: unmount it, then mount it again with the new options")
	case !ok && (option.isGeneric() || o.sloppy):
		return nil
	case !ok:
		return fmt.Errorf("unknown mount option %q", option.name)
	}
	flag := cmd.Flags().Lookup(known.flag)
	if flag.Changed {
		return nil
	}
	return flag.Value.Set(known.value + option.value) // an empty one counts as not given
}

// check makes sure that the options go together.
func (o *mountOptions) check(runDirs []string) error {
	switch {
	case o.all && o.chain:
		return errors.New("a view shows a chain or all runs, not both")
	case o.all && o.restoreRoot != "":
		return errors.New("a view of all runs cannot have a restore root")
	case o.lazy && o.restoreRoot != "":
		return errors.New("a lazy view cannot have a restore root: a restore reads everything first")
	case o.all && len(runDirs) != 1:
		return fmt.Errorf("a view of all runs requires one directory that holds them, not %d", len(runDirs))
	case len(runDirs) == 0 && !o.chain:
		return errors.New("no run directory was given")
	}
	return nil
}

// makeAbsolute makes the paths that are set absolute.
func makeAbsolute(paths ...*string) (err error) {
	for _, path := range paths {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	return nil
}
