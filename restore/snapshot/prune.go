package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// Policy decides which snapshots stay. For each root the newest one always stays, and so does
// the target of an emergency rollback.
type Policy struct {
	Root string // "" for all roots
	// KeepLast is how many of the newest stay of each group: those of the whole root, those of it of
	// which some could not be read, and those of a part; each that a person or a timer has taken,
	// and from before an action. 0 for no such rule.
	KeepLast   int
	Host       string        // validator of this host, see [Store.Target]; "" where it is not known
	KeepWithin time.Duration // those that are not older than this; 0 for no such rule
	Now        time.Time     // zero: the time of this machine
	DryRun     bool          // only report what would be done
	// Goes, unless nil, is called with each snapshot before it is removed; an error stops Prune.
	Goes func(Header) error
}

// Pruned is what Prune has done, or would do.
type Pruned struct {
	Gone    []Header // by root, oldest first
	Kept    []Kept   // of the same roots, in the same order
	Objects int64    // contents that nothing needs any more
	Bytes   int64    // of these, and of parts of manifests
}

// Kept is a snapshot that stays, and why.
type Kept struct {
	Header Header
	Why    string
}

// Prune removes snapshots that the policy does not keep, and then the objects that no snapshot
// of any root needs. inUse returns the reason why a snapshot must stay, "" if nothing refers
// to it; it is called while no Take, Write or Verify is running, for which Prune waits, and
// none can begin. Nothing is removed if a manifest cannot be read.
func (s *Store) Prune(ctx context.Context, policy Policy, inUse func(Header) string) (Pruned, error) {
	done, err := s.prune(ctx, policy, inUse)
	if err != nil {
		return Pruned{}, fmt.Errorf("pruning snapshots: %w", err)
	}
	return done, nil
}

func (s *Store) prune(ctx context.Context, policy Policy, inUse func(Header) string) (Pruned, error) {
	if policy.KeepLast < 0 || policy.KeepWithin < 0 || policy.KeepLast == 0 && policy.KeepWithin == 0 {
		return Pruned{}, errors.New("no retention rule was given")
	}
	if policy.Now.IsZero() {
		policy.Now = time.Now()
	}
	if policy.Root != "" {
		policy.Root = filepath.Clean(policy.Root)
	}
	lock, err := s.wait(ctx, (*pathsafe.Dir).TryLock)
	if err != nil {
		return Pruned{}, err
	}
	defer lock.Close()
	p := &pruning{Store: s, policy: policy, inUse: inUse, needed: map[Digest]bool{}, parts: map[Digest]bool{}}
	damaged, err := s.eachChain(func(at chainDir) error { return p.decide(ctx, at) })
	if err := orDamage(err, damaged); err != nil {
		return Pruned{}, err
	}
	if !policy.DryRun {
		err = p.removeManifests()
	}
	if err == nil {
		err = p.eachObject(ctx)
	}
	return p.done, err
}

// A pruning is one call of Prune.
type pruning struct {
	*Store
	policy Policy
	inUse  func(Header) string
	needed map[Digest]bool
	parts  map[Digest]bool // of the manifests that go
	done   Pruned
}

// decide reads all manifests of a root, also those that go, and notes what the
// others need.
func (p *pruning) decide(ctx context.Context, at chainDir) error {
	headers, damaged, err := at.survey()
	if err := orDamage(err, damaged); err != nil {
		return err
	}
	reasons := p.reasons(headers)
	if err := p.keepTarget(ctx, at, headers, reasons); err != nil {
		return err
	}
	for i, h := range headers {
		if err := ctx.Err(); err != nil {
			return err
		}
		snap, err := at.load(h.fileName())
		if err != nil {
			return err
		}
		concerned := p.policy.Root == "" || p.policy.Root == h.Root
		switch {
		case concerned && reasons[i] == "":
			p.done.Gone = append(p.done.Gone, h)
			for _, part := range snap.parts {
				p.parts[part.digest] = true
			}
			continue
		case concerned:
			p.done.Kept = append(p.done.Kept, Kept{h, reasons[i]})
		}
		for i := range snap.entries {
			if e := &snap.entries[i]; e.Type == File {
				p.needed[e.Digest] = true
			}
		}
		for _, part := range snap.parts {
			p.needed[part.digest] = true
		}
	}
	return nil
}

// reasons returns why each snapshot of a root stays; "" for one that goes.
func (p *pruning) reasons(headers []Header) []string {
	ranks, reasons := map[[3]bool]int{}, make([]string, len(headers))
	hasTarget := NewestForEmergency(headers) != nil
	for i, h := range slices.Backward(headers) {
		group := [3]bool{h.Whole, h.Unread == 0, h.Kind != PreAction}
		ranks[group]++
		switch {
		case i == len(headers)-1:
			reasons[i] = "the newest of its root"
		case ranks[group] == 1 && h.IsPartial() && !hasTarget:
			reasons[i] = "the newest of the whole root, of which none could be read entirely"
		case ranks[group] == 1 && p.policy.KeepLast > 0:
			reasons[i] = "the newest of its kind"
		case ranks[group] <= p.policy.KeepLast:
			reasons[i] = fmt.Sprintf("one of the %d newest of its kind", p.policy.KeepLast)
		case p.policy.KeepWithin > 0 && !h.Time.Before(p.policy.Now.Add(-p.policy.KeepWithin)):
			reasons[i] = fmt.Sprintf("not older than %s", p.policy.KeepWithin)
		case p.inUse != nil:
			reasons[i] = p.inUse(h)
		}
	}
	return reasons
}

// keepTarget finds a reason for the snapshot that an emergency rollback of the root would go
// back to. Where none of its kind goes, nothing has to be verified.
func (p *pruning) keepTarget(ctx context.Context, at chainDir, headers []Header, reasons []string) error {
	first := slices.IndexFunc(headers, func(h Header) bool { return h.ForEmergency() })
	if first < 0 || p.policy.Root != "" && p.policy.Root != headers[0].Root {
		return nil
	}
	goes := false
	for i := first; i < len(headers); i++ {
		goes = goes || headers[i].ForEmergency() && reasons[i] == ""
	}
	if !goes {
		return nil
	}
	to, err := p.target(ctx, at, headers, p.policy.Host)
	if err != nil || to.Snapshot == nil {
		return err
	}
	i := slices.IndexFunc(headers, func(h Header) bool { return h.ID == to.Snapshot.header.ID })
	if reasons[i] == "" {
		reasons[i] = "the newest of the whole root that verifies: an emergency rollback goes back to it"
	}
	return nil
}

func (p *pruning) unlink(at chainDir, h Header) error {
	if p.policy.Goes != nil {
		if err := p.policy.Goes(h); err != nil {
			return err
		}
	}
	return at.Unlink(h.fileName())
}

// removeManifests makes the snapshots go, and that durable, so that none is
// left whose objects, which have contents and parts, are gone.
func (p *pruning) removeManifests() error {
	if err := p.sweep(); err != nil {
		return err
	}
	for i := 0; i < len(p.done.Gone); {
		root := p.done.Gone[i].Root
		at, ok, err := p.enter(keyOf(root))
		if err != nil || !ok {
			return errors.Join(err, fs.ErrNotExist)
		}
		for ; i < len(p.done.Gone) && p.done.Gone[i].Root == root && err == nil; i++ {
			err = p.unlink(at, p.done.Gone[i])
		}
		if err == nil {
			err = at.Sync()
		}
		at.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// eachObject removes the objects that nothing needs. What does not have the name
// of an object is not one, and stays.
func (p *pruning) eachObject(ctx context.Context) error {
	shards, err := p.objects.Names()
	if err != nil {
		return err
	}
	for _, name := range shards {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !hexdigits.Are(name, 2) {
			continue
		}
		shard, err := p.objects.open(name)
		if err != nil {
			return damage(filepath.Join(objectsName, name), nil, err)
		}
		err = p.shard(shard, name)
		shard.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *pruning) shard(shard dir, prefix string) error {
	names, err := shard.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		d, err := hexDigest(name)
		if err != nil || name[:2] != prefix || p.needed[d] {
			continue
		}
		st, err := shard.Stat(name)
		if err != nil {
			return err
		}
		if !st.Mode.IsDir() && !p.policy.DryRun {
			err = shard.Unlink(name)
		}
		if err != nil {
			return err
		}
		if !p.parts[d] {
			p.done.Objects++
		}
		p.done.Bytes += st.Size
	}
	return nil
}
