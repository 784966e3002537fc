package machine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// Prefix begins the name of the directory in which features are tested. It differs from the prefix
// of a transaction, so that no recovery touches it.
const Prefix = ".spectrum-doctor-"

// NewName returns a random name.
func NewName() string { return Prefix + rand.Text() }

// A Finding is the result of testing a feature. Err is nil if it works; [IsLacking] reports whether
// the file system does not have it, rather than that the test failed.
type Finding struct {
	Feature Feature
	Err     error
}

// Probe tests all features in a directory called name, which it creates in dir and removes. It does
// not keep other processes out. On an error, which may be that of ctx, it returns no findings, and
// the error names what was left behind.
func Probe(ctx context.Context, dir *pathsafe.Dir, name string) ([]Finding, error) {
	return probe(ctx, &sys.Hook{}, dir, name)
}

func probe(ctx context.Context, h *sys.Hook, dir *pathsafe.Dir, name string) ([]Finding, error) {
	in := sys.Dir{H: dir, Hook: h}
	if err := in.Mkdir(name, 0o700); err != nil {
		return nil, err
	}
	findings, err := probeIn(ctx, in, name)
	if left := in.Rmdir(name); left != nil {
		err = errors.Join(err, fmt.Errorf("%q is left: %w", name, left))
	}
	if err != nil {
		return nil, err
	}
	return findings, nil
}

func probeIn(ctx context.Context, dir sys.Dir, name string) ([]Finding, error) {
	work, err := dir.Enter(name)
	if err != nil {
		return nil, err
	}
	defer work.Close()
	findings, err := tryAll(ctx, dir.Hook, name, &bench{dir: work})
	return findings, errors.Join(err, dir.Hook.Do("clear", name, func() error { return clearAway(work) }))
}

func tryAll(ctx context.Context, h *sys.Hook, name string, b *bench) ([]Finding, error) {
	var findings []Finding
	for _, t := range trials {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := h.Do(string(t.feature), name, func() error { return t.try(b) })
		findings = append(findings, Finding{t.feature, err})
	}
	return findings, nil
}

// clearAway removes what the tests have created: files, links and empty directories.
func clearAway(dir *pathsafe.Dir) error {
	names, err := dir.Names()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		err := dir.Unlink(name)
		if errors.Is(err, unix.EISDIR) {
			err = dir.Rmdir(name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// A bench is the directory in which features are tried.
type bench struct {
	dir  *pathsafe.Dir
	made int
}

// name returns a new name.
func (b *bench) name() string {
	b.made++
	return fmt.Sprintf("n%d", b.made)
}

// withFile creates a small file and calls do with it and its name.
func (b *bench) withFile(do func(f *os.File, name string) error) error {
	name := b.name()
	f, err := b.dir.Create(name, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = do(f, name)
	}
	return errors.Join(err, f.Close())
}

// content is less than a block of most file systems.
var content = []byte("spectrum doctor tries what this file system can do, and removes this file.\n")
