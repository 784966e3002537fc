package savepoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Draft is what a savepoint is to say.
type Draft struct {
	Outputs []bundle.Known // files beneath the restore root, at least one
	Said    map[string]any // further constraints to sign; "savepoint" is taken
	Report  Report
}

func (d Draft) check() error {
	if _, taken := d.Said[recordName]; taken {
		return fmt.Errorf("the constraint %q is not the caller's", recordName)
	}
	value, err := canonjson.Parse(d.Report.JSON)
	if err != nil {
		return fmt.Errorf("the Commit Report: %w", err)
	}
	if !bytes.Equal(value.Append(nil), d.Report.JSON) {
		return errors.New("the Commit Report is not canonical JSON")
	}
	if max(len(d.Report.JSON), len(d.Report.Markdown)) > maxReport {
		return fmt.Errorf("the Commit Report has more than %d bytes", maxReport)
	}
	return nil
}

// ErrStale reports a savepoint that was not prepared for the present tip.
var ErrStale = errors.New("the chain has grown since it was prepared")

// Prepare seals the savepoint of an attempt, a UUID, with the tip of the chain as
// its parent, and returns its ID. It is durable, and not in the chain yet. The
// error is fs.ErrExist when one was prepared or published for this attempt before;
// with an error nothing was prepared.
func (s *Store) Prepare(ctx context.Context, root, attempt string, d Draft, key bundle.Key, buildID string) (string, error) {
	id, err := s.prepare(ctx, root, attempt, d, bundle.KnownOptions{Key: key, BuildID: buildID})
	if err != nil {
		return "", fmt.Errorf("preparing the savepoint of %q: %w", root, err)
	}
	return id, nil
}

func (s *Store) prepare(ctx context.Context, root, attempt string, d Draft, opts bundle.KnownOptions) (string, error) {
	if err := errors.Join(checkAttempt(attempt), d.check(), ctx.Err()); err != nil {
		return "", err
	}
	c, err := s.make(root)
	if err != nil {
		return "", err
	}
	defer c.close()
	if err := errors.Join(c.sweep(), c.checkNew(attempt)); err != nil {
		return "", err
	}
	tip, _, err := c.tip()
	if err != nil {
		return "", err
	}
	_, clean, err := keyOf(root)
	if err != nil {
		return "", err
	}
	r := recordAfter(tip)
	r.Attempt, r.Root, r.Report = attempt, canonjson.PathText(clean), d.Report.digests()
	opts.RunDir = c.runDir(prepared, slot{r.Sequence, attempt})
	opts.Outputs, opts.Constraints = d.Outputs, with(d.Said, r)
	opts.Extra = map[string][]byte{reportMarkdown: d.Report.Markdown, reportJSON: d.Report.JSON}
	sealed, err := bundle.SealKnown(ctx, opts)
	return sealed.BundleRoot, err
}

// recordAfter is the record that follows a tip, or the zero Savepoint.
func recordAfter(tip Savepoint) record {
	r := record{Sequence: tip.Sequence() + 1}
	if tip.id != "" {
		r.Parent = &tip.id
	}
	return r
}

func with(said map[string]any, r record) map[string]any {
	all := map[string]any{recordName: r}
	maps.Copy(all, said)
	return all
}

// checkNew requires an attempt without a prepared savepoint.
func (c *chain) checkNew(attempt string) error {
	waiting, err := c.pending()
	if err != nil {
		return err
	}
	done, err := c.slots()
	if err != nil {
		return err
	}
	if _, found := findSlot(append(waiting, done...), attempt); found {
		return fmt.Errorf("attempt %s has one: %w", attempt, fs.ErrExist)
	}
	return nil
}

// Publish makes the savepoint that was prepared for an attempt the tip of the
// chain, durably, and returns its ID; "" when none was prepared. One that was
// published before stays where it is. The error is ErrStale when its parent is
// not the tip.
func (s *Store) Publish(root, attempt string) (string, error) {
	id, err := s.publish(root, attempt)
	if err != nil {
		return "", fmt.Errorf("publishing the savepoint of %q: %w", root, err)
	}
	return id, nil
}

func (s *Store) publish(root, attempt string) (string, error) {
	if err := checkAttempt(attempt); err != nil {
		return "", err
	}
	c, err := s.enter(root)
	if err != nil || c == nil {
		return "", err
	}
	defer c.close()
	return c.publish(attempt)
}

// publish publishes what this chain has for an attempt; "" when that is nothing.
func (c *chain) publish(attempt string) (string, error) {
	done, _, err := c.slotsIn(published)
	if err != nil {
		return "", err
	}
	if at, found := findSlot(done, attempt); found {
		return c.publishedAs(at)
	}
	waiting, err := c.pending()
	if err != nil {
		return "", err
	}
	at, found := findSlot(waiting, attempt)
	if !found {
		return "", nil
	}
	return c.append(at)
}

// PublishMoved is [Store.Publish] for a root that has another path now than when
// the savepoint was prepared: it goes to the chain of the path that it had.
func (s *Store) PublishMoved(attempt string) (string, error) {
	if err := checkAttempt(attempt); err != nil {
		return "", err
	}
	keys, err := s.dir.Names()
	if err != nil {
		return "", err
	}
	slices.Sort(keys)
	for _, key := range keys {
		c, err := s.enterKey(key)
		if err != nil || c == nil {
			continue // what is strange here is of another root
		}
		id, err := c.publish(attempt)
		c.close()
		if err != nil {
			return "", fmt.Errorf("publishing the savepoint of attempt %s: %w", attempt, err)
		}
		if id != "" {
			return id, nil
		}
	}
	return "", nil
}

// Prepared is the savepoint that is prepared for an attempt; fs.ErrNotExist when
// there is none.
func (s *Store) Prepared(root, attempt string) (Savepoint, error) {
	c, err := s.enter(root)
	if err != nil {
		return Savepoint{}, err
	}
	if c == nil {
		return Savepoint{}, fs.ErrNotExist
	}
	defer c.close()
	waiting, err := c.pending()
	if err != nil {
		return Savepoint{}, err
	}
	at, found := findSlot(waiting, attempt)
	if !found {
		return Savepoint{}, fs.ErrNotExist
	}
	return c.load(prepared, at)
}

// publishedAs makes durable what a process did that may have been killed then.
func (c *chain) publishedAs(at slot) (string, error) {
	sp, err := c.load(published, at)
	if err != nil {
		return "", err
	}
	return sp.id, errors.Join(c.published.Sync(), c.prepared.Sync())
}

// append moves a prepared savepoint to the end of the chain.
func (c *chain) append(at slot) (string, error) {
	sp, err := c.load(prepared, at)
	if err != nil {
		return "", err
	}
	done, _, err := c.slotsIn(published)
	if err != nil {
		return "", err
	}
	var tip Savepoint
	var last slot
	var damaged *DamageError // then it is known by its name alone
	if len(done) > 0 {
		last = done[len(done)-1]
		if tip, err = c.load(published, last); err != nil && !errors.As(err, &damaged) {
			return "", err
		}
	}
	if damaged == nil && sp.Parent() != tip.id || sp.Sequence() != last.sequence+1 {
		return "", ErrStale
	}
	if err := c.prepared.RenameNoReplace(at.name(), c.published, at.name()); err != nil {
		return "", err
	}
	return c.publishedAs(at)
}

// Drop forgets, durably, what was prepared for an attempt, if anything was. One
// that was published stays.
func (s *Store) Drop(root, attempt string) error {
	if err := s.drop(root, attempt); err != nil {
		return fmt.Errorf("dropping the savepoint of %q: %w", root, err)
	}
	return nil
}

func (s *Store) drop(root, attempt string) error {
	if err := checkAttempt(attempt); err != nil {
		return err
	}
	c, err := s.enter(root)
	if err != nil || c == nil {
		return err
	}
	defer c.close()
	waiting, err := c.pending()
	if err != nil {
		return err
	}
	if at, found := findSlot(waiting, attempt); found {
		if err := c.prepared.RenameNoReplace(at.name(), c.prepared, dropped+at.name()); err != nil {
			return err
		}
	}
	if err := c.prepared.Sync(); err != nil {
		return err
	}
	return errors.Join(c.sweep(), c.prepared.Sync())
}

// Pending are the attempts for which a savepoint is prepared that is neither
// published nor dropped.
func (s *Store) Pending(root string) ([]string, error) {
	c, err := s.enter(root)
	if err != nil || c == nil {
		return nil, err
	}
	defer c.close()
	waiting, err := c.pending()
	if err != nil {
		return nil, err
	}
	attempts := make([]string, 0, len(waiting))
	for _, s := range waiting {
		attempts = append(attempts, s.attempt)
	}
	return attempts, nil
}

// The names of what is not a savepoint yet, or not any more.
const (
	sealing = ".sealing-" // by package bundle
	dropped = ".dropped-"
)

func isRemains(name string) bool {
	return strings.HasPrefix(name, sealing) || strings.HasPrefix(name, dropped)
}

// sweep removes what is left of work that was interrupted.
func (c *chain) sweep() error {
	names, err := c.prepared.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !isRemains(name) {
			continue
		}
		if err := removeAll(c.prepared, name); err != nil {
			return fmt.Errorf("removing %q: %w", name, err)
		}
	}
	return nil
}

// removeAll removes a run directory. What holds more than files stays.
func removeAll(parent *pathsafe.Dir, name string) error {
	dir, err := parent.OpenDir(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return err
	}
	for _, file := range names {
		if err := dir.Unlink(file); err != nil {
			return err
		}
	}
	return parent.Rmdir(name)
}
