package snapshot

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// publish gives the snapshot its place in the chain of its root, writes the manifest beside
// its place, durably, and moves it there. A lock excludes other takes.
func (t *take) publish(ctx context.Context, h Header, entries []Entry, parts []part, key bundle.Key) (*Snapshot, error) {
	p, err := t.roots.makeDurable(keyOf(h.Root))
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if err := t.sysHook.await(ctx, p, (*pathsafe.Dir).TryLock); err != nil {
		return nil, err
	}
	sequence, id, err := chainDir{p, keyOf(h.Root), t.Store}.last()
	if err != nil {
		return nil, err
	}
	h.Sequence, h.Previous = sequence+1, id
	if id != "" && t.req.Follows != nil {
		if err := t.req.Follows(id); err != nil {
			return nil, err
		}
	}
	const temp = "manifest"
	f, err := t.incoming.Create(temp, 0o400)
	if err != nil {
		return nil, err
	}
	err = writeManifest(t.sysHook, f, &h, entries, parts, key)
	if err == nil {
		err = t.sysHook.SyncFile(f)
	}
	if err := errors.Join(err, t.sysHook.CloseFile(f)); err != nil {
		return nil, err
	}
	if err := t.incoming.rename(temp, p, h.fileName()); err != nil {
		return nil, err
	}
	if err := p.Sync(); err != nil {
		return nil, err
	}
	return t.snapshot(h, entries), nil
}

func (t *take) snapshot(h Header, entries []Entry) *Snapshot {
	return &Snapshot{
		header: h, entries: entries,
		restless: slices.Sorted(maps.Keys(t.restless)), leftOut: slices.Sorted(maps.Keys(t.leftOut)),
	}
}
