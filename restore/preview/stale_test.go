package preview_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestStaleNamesChanges checks that the error of a stale preview names what changed by its path, and when.
func TestStaleNamesChanges(t *testing.T) {
	on := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for name, test := range map[string]struct {
		change func(s *scene)
		want   string // a regular expression
	}{
		"edited": {func(s *scene) {
			must(s.T, os.WriteFile(s.At("config.yaml"), []byte("changed"), 0o644))
			must(s.T, os.Chtimes(s.At("config.yaml"), on, on))
		}, `"config\.yaml" was changed on 2026-03-04 at 05:06:07 UTC$`},
		"same size": {func(s *scene) {
			must(s.T, os.Chtimes(s.At("config.yaml"), on, on))
		}, `"config\.yaml" was changed on 2026-03-04 at 05:06:07 UTC$`},
		"removed":          {func(s *scene) { must(s.T, os.Remove(s.At("config.yaml"))) }, `"config\.yaml" was removed$`},
		"created":          {func(s *scene) { must(s.T, os.WriteFile(s.At("dir/new"), nil, 0o644)) }, `"dir/new" was created on 20.* UTC$`},
		"mode":             {func(s *scene) { must(s.T, os.Chmod(s.At("config.yaml"), 0o600)) }, `"config\.yaml" had mode -rw-r--r--, and now has mode -rw-------$`},
		"mode of the root": {func(s *scene) { must(s.T, os.Chmod(s.RestoreRoot, 0o700)) }, `its own directory had mode .*, and now has mode drwx------$`},
		"replaced": {func(s *scene) {
			must(s.T, os.WriteFile(s.At("other"), []byte("old"), 0o644))
			must(s.T, os.Rename(s.At("other"), s.At("config.yaml")))
		}, `"config\.yaml" was replaced by another file on 20.* UTC$`},
		"link": {func(s *scene) {
			must(s.T, os.Remove(s.At("config.yaml")))
			must(s.T, os.Symlink("nowhere", s.At("config.yaml")))
		}, `"config\.yaml" was replaced by a symbolic link on 20.* UTC$`},
		"directory exchanged": {func(s *scene) {
			must(s.T, os.Rename(s.At("dir"), s.At("away")))
			must(s.T, os.Mkdir(s.At("dir"), 0o755))
		}, `", "dir" was replaced by another directory$`},
		"many": {func(s *scene) {
			for n := range 5 {
				must(s.T, os.WriteFile(s.At(fmt.Sprintf("many/f%d", n)), nil, 0o644))
			}
		}, `"many/f0" was created.*, "many/f1" was created.*, "many/f2" was created.*, and 2 more paths changed$`},
		"directory with files removed": {func(s *scene) { must(s.T, os.RemoveAll(s.At("dir"))) }, `", "dir" was removed$`},
		"candidate": {func(s *scene) {
			s.Write("config.yaml", "newer")
			s.Runs[0].EditHashes(func(h map[string]any) { h["config.yaml"] = bundletest.Hash("newer") })
		}, `the candidate \("config\.yaml"\) changed after it was made$`},
		"path of the root": {func(s *scene) {
			was := s.RestoreRoot
			must(s.T, os.Rename(was, was+"-away"))
			must(s.T, os.Symlink(was+"-away", was))
		}, `the path of the restore root ".*" led to ".*", and now leads to ".*-away"$`},
		"trust": {func(s *scene) { s.Policy = restoretest.PolicyOf(s.T, nil, []string{strings.Repeat("c", 64)}) }, `the set of trusted validators changed after it was made$`},
	} {
		t.Run(name, func(t *testing.T) {
			s := bareScene(t)
			outputs := map[string]string{"config.yaml": "new", "dir/new": "new", "dir/other": "new"}
			for n := range 5 {
				outputs[fmt.Sprintf("many/f%d", n)] = "new"
			}
			s.Add("run-1", outputs)
			s.Asked.Replace = true
			must(t, os.Mkdir(s.At("dir"), 0o755))
			must(t, os.Mkdir(s.At("many"), 0o755))
			must(t, os.WriteFile(s.At("config.yaml"), []byte("old"), 0o644))
			must(t, os.WriteFile(s.At("dir/other"), []byte("old"), 0o644))
			record := kept(t, s.Preview())
			must(t, record.Holds(s.Preview()))
			test.change(s)
			err := record.Holds(s.Preview())
			if !errors.Is(err, preview.ErrStale) || !regexp.MustCompile(test.want).MatchString(err.Error()) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestStaleNamesOwners checks that a change of the owner names the old and the new one.
func TestStaleNamesOwners(t *testing.T) {
	needRoot(t)
	s := bareScene(t)
	s.Add("run-1", map[string]string{"config.yaml": "new"})
	s.Asked.Replace = true
	must(t, os.WriteFile(s.At("config.yaml"), []byte("old"), 0o644))
	record := kept(t, s.Preview())
	must(t, os.Lchown(s.At("config.yaml"), mallory, 0))
	if err := record.Holds(s.Preview()); err == nil || !strings.HasSuffix(err.Error(), `"config.yaml" belonged to user root (0), and now belongs to user 4241`) {
		t.Error(err)
	}
}

// TestRemade checks that a preview that cannot be made again because the root or a decided conflict has
// changed is stale, and that other errors stay as they are.
func TestRemade(t *testing.T) {
	s := restoretest.ChangeScene(t)
	must(t, os.WriteFile(s.At("app"), []byte("mine\n"), 0o644))
	s.Asked.Decisions = map[string]statement.Verdict{"C-002": preview.Keep} // the first is that no validator is pinned
	record := kept(t, s.Preview())
	for want, err := range map[string]error{
		"the preview is stale: a root: the restore root changes while it is examined":            fmt.Errorf("a root: %w", preview.ErrUnsettled),
		`the preview is stale: a conflict that was decided on before is no longer there ("app")`: fmt.Errorf("%w: there is no conflict", preview.ErrDecision),
	} {
		if got := record.Remade(err); !errors.Is(got, preview.ErrStale) || got.Error() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	for _, err := range []error{nil, fs.ErrNotExist, preview.ErrStale} {
		if got := record.Remade(err); got != err {
			t.Errorf("%v, want %v", got, err)
		}
	}
}
