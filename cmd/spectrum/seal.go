package main

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/gitbase"
	"github.com/spectrumfs/spectrum/restore/glob"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/ignore"
	"github.com/spf13/cobra"
)

type sealOptions struct {
	runDir      string
	task        string
	key         string
	inputs      []string
	scopes      []string
	agent       string
	constraints []string
	exclude     []string
	skipSpecial bool
	base        string
	baseRun     string
	baseGit     string
	upper       string
	lower       string
}

func newSeal(app *app) *cobra.Command {
	var opts sealOptions
	cmd := &cobra.Command{
		Use:   "seal [--run-dir DIR | --task NAME] OUTPUT... | --base DIR [OUTPUT...] | --base-git[=REV] [OUTPUT...] | --base-run RUN_DIR [OUTPUT...] | --upper DIR --lower DIR",
		Short: "sign files or directories of a project as a bundle",
		Long: `seal hashes files and directories of a project and signs the result as a run
directory. To seal the whole project, give "." in its root.

Without --run-dir, seal makes a new run directory in CONTRACTS/_runs of the
project, named by the time and --task, and prints its path on stdout. The project
is --project-root, or the nearest directory, from the working directory upwards,
that has CONTRACTS/_runs, or the working directory. With --run-dir, which must be
new or empty, it prints the bundle root. The default key is key.pem in the state
directory; it is made if it does not exist.

In a directory, seal leaves out and names on stderr: .git, CONTRACTS/_runs and
LAW/CONTRACTS/_runs, names that restores reserve, the key, the state directory, and
what --exclude or .spectrumignore matches (gitignore syntax). An output that you
name is always sealed. Only regular files can be sealed: links, FIFOs, sockets and
devices are errors, unless --skip-special leaves them out.

With --base DIR the bundle is a change set. DIR holds the project as it was before,
for example a copy; the project must not be inside it. seal compares the outputs
(default: the whole project) with DIR. It seals new and changed files, and records
files that are only in DIR as removals. A preview then requires no --replace: a
restore replaces or removes files that are as in DIR; other files have diverged and
are left out. Paths that seal leaves out are not compared. seal rejects a file that
became a directory or a link, or the reverse, and a removed link.

--base-run RUN_DIR compares with the signed outputs of a run, and ignores whether
files are executable. --base-git compares with a commit of the project's git
repository as a checkout would have it: HEAD, or REV in --base-git=REV. Ignored
files, nested repositories and submodules are left out and named. seal runs no
program that the repository configures, and writes nothing below .git.

--upper DIR --lower DIR compares the upper layer of an overlay, which is the
project and has the run directories, with the lower one. Whiteouts and opaque
directories are removals. The overlay must be unmounted. Layers with renamed
directories (redirect_dir) or files without content (metacopy) are rejected.

--agent, --scope and --constraint are signed and shown by every preview; they
approve nothing. The pattern notes/ matches everything in a directory, notes/*.md
the files in it; the most specific pattern applies. A pattern that matches no
output puts the candidate in quarantine.`,
		Args: func(cmd *cobra.Command, args []string) error { return opts.check(cmd, args) },
		RunE: func(cmd *cobra.Command, outputs []string) error {
			return runSeal(cmd, app, opts, outputs)
		},
	}
	cmd.Flags().StringVar(&opts.runDir, "run-dir", "", "new run `directory` (default: one in CONTRACTS/_runs of the project)")
	cmd.Flags().StringVar(&opts.base, "base", "", "seal only changes since the copy of the project in this `directory`")
	cmd.Flags().StringVar(&opts.baseRun, "base-run", "", "seal only changes since this `run directory` was signed")
	cmd.Flags().StringVar(&opts.baseGit, "base-git", "", "seal only changes since this `revision` of the git repository (HEAD if none is given)")
	cmd.Flags().Lookup("base-git").NoOptDefVal = gitbase.Head
	cmd.Flags().StringVar(&opts.upper, "upper", "", "seal the changes in this upper `directory` of an overlay, which is the project")
	cmd.Flags().StringVar(&opts.lower, "lower", "", "lower `directory` of the overlay of --upper")
	opts.sharedFlags(cmd)
	return cmd
}

// check checks that there are outputs, or one base to compare the project with, and the task.
func (o *sealOptions) check(cmd *cobra.Command, args []string) error {
	bases := 0
	for _, base := range []string{o.base, o.baseRun, o.baseGit, o.upper + o.lower} {
		if base != "" {
			bases++
		}
	}
	switch {
	case bases > 1:
		return usage(cmd, "--base, --base-git, --base-run and --upper cannot be combined")
	case bases == 0 && len(args) == 0:
		return &usageError{command: cmd.CommandPath(), err: errors.New("no output was given"), next: "for the whole project: spectrum seal ."}
	case o.task != "" && (o.runDir != "" || !taskName.MatchString(o.task)):
		return usage(cmd, "--task %q: it takes a name of letters, digits and ._- for the run directory that is made without --run-dir", o.task)
	case o.upper+o.lower != "":
		return o.checkLayer(cmd, args)
	}
	return nil
}

// sharedFlags are those of whatever seals.
func (o *sealOptions) sharedFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.task, "task", "", "`name` of the task, used in the name of the run directory")
	cmd.Flags().StringVar(&o.key, "key", "", "key `file` (default: key.pem in the state directory, made if it does not exist)")
	cmd.Flags().StringArrayVar(&o.inputs, "input", nil, "`reference` to an input, for TASK_SPEC.json; may be repeated")
	cmd.Flags().StringVar(&o.agent, "agent", "", "`name` of the agent of the run; its identity layer is for this agent only")
	cmd.Flags().StringArrayVar(&o.scopes, "scope", nil, "restore scope of outputs, as `PATTERN=SCOPE`; may be repeated (default: project_state)")
	cmd.Flags().StringArrayVar(&o.constraints, "constraint", nil, "other signed facts of the run, as `NAME=TEXT`, such as title=...; may be repeated")
	cmd.Flags().StringArrayVar(&o.exclude, "exclude", nil, "`pattern` of files to leave out, as in .gitignore; may be repeated")
	cmd.Flags().BoolVar(&o.skipSpecial, "skip-special", false, "leave out links, FIFOs, sockets and devices")
}

// sharedWords are these flags as words of a command line.
func (o *sealOptions) sharedWords() (words []string) {
	key := o.key
	if abs, err := filepath.Abs(key); err == nil && key != "" {
		key = abs // the command is typed wherever one is
	}
	for _, flag := range []struct {
		name   string
		values []string
	}{
		{"--task", []string{o.task}}, {"--key", []string{key}}, {"--input", o.inputs}, {"--agent", []string{o.agent}},
		{"--scope", o.scopes}, {"--constraint", o.constraints}, {"--exclude", o.exclude},
	} {
		for _, value := range flag.values {
			if value != "" {
				words = append(words, flag.name, value)
			}
		}
	}
	if o.skipSpecial {
		words = append(words, "--skip-special")
	}
	return words
}

// claims are the constraints of TASK_SPEC.json: the signer's statements about the run.
func (o *sealOptions) claims(cmd *cobra.Command) (map[string]any, error) {
	claims := map[string]any{}
	for _, text := range o.constraints {
		name, value, ok := strings.Cut(text, "=")
		if _, double := claims[name]; !ok || name == "" || name == scope.Member || name == scope.Exact || name == bundle.ChangesMember || name == bundle.BlocksMember || double {
			return nil, usage(cmd, "--constraint %q is not NAME=TEXT with a NAME of its own", text)
		}
		claims[name] = value
	}
	if _, double := claims["agent_id"]; double && o.agent != "" {
		return nil, usage(cmd, "--agent already sets the constraint agent_id")
	}
	if o.agent != "" {
		claims["agent_id"] = o.agent
	}
	scopes := map[string]any{}
	for _, text := range o.scopes {
		at := strings.LastIndex(text, "=")
		if at < 0 {
			return nil, usage(cmd, "--scope %q is not PATTERN=SCOPE", text)
		}
		if _, err := scope.Parse(text[at+1:]); err != nil {
			return nil, usage(cmd, "--scope: %w", err)
		}
		if _, err := glob.Parse(text[:at]); err != nil {
			return nil, usage(cmd, "--scope: %w", err)
		}
		scopes[text[:at]] = text[at+1:]
	}
	if len(scopes) > 0 {
		claims[scope.Member] = scopes
	}
	return claims, nil
}

func runSeal(cmd *cobra.Command, app *app, opts sealOptions, outputs []string) error {
	claims, err := opts.claims(cmd)
	if err != nil {
		return err
	}
	if _, err := ignore.New(nil, opts.exclude); err != nil {
		return usage(cmd, "--exclude: %w", err)
	}
	if opts.upper != "" {
		return app.sealUpper(cmd, opts, claims)
	}
	root, runDir, err := app.sealRoots(cmd, opts)
	if err != nil {
		return err
	}
	if len(outputs) == 0 {
		outputs = []string{root}
	}
	paths, err := beneath(root, outputs)
	if err != nil {
		return refusedHint(err, "outputs are files or directories under the project root; name that with --project-root DIR")
	}
	project, err := openProject(root)
	if err != nil {
		return err
	}
	defer project.Close()
	key, err := app.sealingKey(opts.key)
	if err != nil {
		return err
	}
	bar := app.newBar("looking at the outputs")
	defer bar.done()
	base, err := app.openBase(cmd, opts, project, root, paths)
	if err != nil {
		return err
	}
	defer base.Close()
	sealed := sealedRun{runDir: runDir, isChangeSet: base.isGiven(), isFound: opts.runDir == ""}
	var another func() string
	if sealed.isFound {
		another = func() string { sealed.runDir = freeRunDir(root, time.Now(), opts.task); return sealed.runDir }
	}
	sealed.Sealed, err = bundle.Seal(cmd.Context(), bundle.SealOptions{
		Project: project, Blocks: true, RunDir: runDir, Another: another, Outputs: paths, Base: base.dir, BaseList: base.list, Inputs: opts.inputs, Constraints: claims, Key: key, BuildID: buildID(),
		Exclude: opts.exclude, SkipSpecial: opts.skipSpecial, Private: base.private, Restricted: app.restricted(claims), LeftOut: func(groups []bundle.LeftOut) { sealed.left = groups }, Leave: base.git.Leave,
		Listed: func(files int, bytes int64) { bar.begin("sealing", files, bytes) }, Hashed: bar.add,
	})
	bar.done()
	sealed.left = append(sealed.left, base.git.LeftOut()...)
	sealed.left.say(app)
	if err != nil {
		return sealError(err)
	}
	app.noteCandidate(&sealed, base.over())
	sealed.say(app)
	if over := base.over(); over != "" {
		app.say("to look at it: %s", app.reviewLine(sealed.runDir, over))
	}
	return sealed.result(app, base.fields())
}

// sealedRun is a run directory that was sealed.
type sealedRun struct {
	bundle.Sealed
	runDir      string
	left        leftOut
	isChangeSet bool
	isFound     bool // the run directory was not named
}

// say prints what was sealed.
func (s *sealedRun) say(a *app) {
	a.say("sealed %s, %s, as %q", numberOf(s.Files, "file"), bytesText(s.Bytes), s.runDir)
	if s.isChangeSet {
		a.say("a change set: %s", changedText(s.Counts))
	}
}

// fields are what --json has of it.
func (s *sealedRun) fields() map[string]any {
	fields := map[string]any{
		"bundle_root": s.BundleRoot, "bytes": s.Bytes, "files": s.Files, "left_out": s.left.counts(), "ok": true, "run_dir": jsonText(s.runDir), "validator_id": s.ValidatorID,
	}
	if n := s.Counts; s.isChangeSet {
		fields["changes"] = map[string]int{"carried": n.Carried, "changed": n.Changed, "new": n.New, "removed": n.Removed}
	}
	return fields
}

// result prints the result of "spectrum seal", with more fields for --json.
func (s *sealedRun) result(a *app, more map[string]any) error {
	result := s.BundleRoot
	if s.isFound {
		a.say("bundle root %s", s.BundleRoot)
		result = s.runDir
	}
	fields := s.fields()
	maps.Copy(fields, more)
	return a.result(result, fields)
}

func sealError(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return hinted(fmt.Errorf("nothing was sealed: %w", err), sealHint(err))
}

// beneath turns arguments into paths below the project root. Only their form
// is dealt with here; what they lead to is for the seal to judge.
func beneath(root string, args []string) ([]string, error) {
	out := make([]string, 0, len(args))
	for _, arg := range args {
		if arg == "" { // of a shell's variable that is not set, for one: it is not the working directory
			return nil, errors.New("an output is empty")
		}
		abs, err := filepath.Abs(arg)
		if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(root, abs)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			return nil, fmt.Errorf("output %q is not under the project root %q", arg, root)
		}
		out = append(out, rel)
	}
	return out, nil
}

// buildID returns which build of spectrum sealed a bundle (SPECTRUM-02, section
// 2.2): the commit it was built from, else a hash of the program's build id.
func buildID() string {
	built := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			built[s.Key] = s.Value
		}
	}
	if revision := built["vcs.revision"]; revision != "" && built["vcs.modified"] == "false" {
		return "git:" + revision
	}
	return "file:" + programHash()
}

// programHash returns a hash of the build ID of the Go toolchain, which depends on the content of
// the program: reading the whole program would be the longest part of a small commit.
func programHash() string {
	program, err := elf.Open("/proc/self/exe")
	if err != nil {
		return "unknown"
	}
	defer program.Close()
	section := program.Section(".note.go.buildid")
	if section == nil {
		return "unknown"
	}
	note, err := section.Data()
	if err != nil {
		return "unknown"
	}
	sum := sha256.Sum256(note)
	return hex.EncodeToString(sum[:])[:16]
}
