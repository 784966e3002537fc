package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/verify"
)

// objectPerm is the mode of an object. It is never changed.
const objectPerm = 0o400

func (d Digest) name() string { return hex.EncodeToString(d[:]) }

// hexDigest reads the name of an object.
func hexDigest(name string) (d Digest, err error) {
	if !isID(name) {
		return Digest{}, errors.New("not the name of an object")
	}
	_, err = hex.Decode(d[:], []byte(name))
	return d, err
}

func (d Digest) shard() string { return hex.EncodeToString(d[:1]) }

func (d Digest) path() string { return filepath.Join(objectsName, d.shard(), d.name()) }

// shardDirs are the directories of the objects, each opened once.
type shardDirs struct {
	objects dir
	mu      sync.Mutex
	shards  [256]dir
}

// open returns the directory of an object, which stays that of the shards.
func (s *shardDirs) open(d Digest, make bool) (dir, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shard := &s.shards[d[0]]
	if shard.H != nil {
		return *shard, nil
	}
	open := s.objects.open
	if make {
		open = s.objects.make
	}
	opened, err := open(d.shard())
	if err != nil {
		return dir{}, err
	}
	*shard = opened
	return opened, nil
}

func (s *shardDirs) close() {
	for _, d := range s.shards {
		d.Close()
	}
}

// has reports whether an object exists. One of another size, or that is not a valid object
// file, does not count.
func (s *shardDirs) has(d Digest, size int64) (bool, error) {
	shard, err := s.open(d, false)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	st, err := shard.Stat(d.name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && st.Mode.IsRegular() && st.Perm == objectPerm && st.Size == size, err
}

// objects are what a take needs: those that are there, and fresh ones, which
// are in its own directory until all of them are durable.
type objects struct {
	shardDirs
	s        *Store
	incoming dir
	mu       sync.Mutex
	there    map[Digest]bool
	fresh    map[Digest]freshObject
	unsure   map[byte]bool // shards with objects whose names may not be durable
	rooms    []dir
}

// A freshObject is in the directory of a worker.
type freshObject struct {
	in   dir
	size int64
}

func newObjects(s *Store, incoming dir) *objects {
	return &objects{
		shardDirs: shardDirs{objects: s.objects}, s: s, incoming: incoming,
		there: map[Digest]bool{}, fresh: map[Digest]freshObject{}, unsure: map[byte]bool{},
	}
}

// known reports whether an object is in the store, and matches its name. durable makes its
// name durable, for a snapshot that needs it.
func (o *objects) known(d Digest, size int64, durable bool) (bool, error) {
	o.mu.Lock()
	there := o.there[d]
	o.mu.Unlock()
	if there {
		return true, nil
	}
	there, err := o.sound(d, size)
	if err != nil || !there {
		return false, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.there[d] = true
	if !durable {
		o.unsure[d[0]] = true
	}
	return true, nil
}

// Below fewObjects each is looked at. Above it the store is listed, unless it is
// much larger: listing is how many names it gives in the time of one look.
const (
	fewObjects = 1024
	listing    = 8
)

// among returns a function that reports whether an object exists that a snapshot needs. n is
// the expected number of calls. The objects are trusted by their names, and with a list
// regardless of their size: Verify finds damage.
func (o *objects) among(n int) (func(*Entry) (bool, error), error) {
	each := func(e *Entry) (bool, error) { return o.has(e.Digest, e.Size) }
	if n < fewObjects {
		return each, nil
	}
	first, err := o.list(0)
	if err != nil || len(first)*len(o.shards) > n*listing {
		return each, err
	}
	var all [len(o.shards)]map[Digest]bool
	err = inorder.Do(context.Background(), len(all), func(i int) (err error) {
		all[i], err = o.list(byte(i))
		return err
	})
	return func(e *Entry) (bool, error) { return all[e.Digest[0]][e.Digest], nil }, err
}

// read reads the objects of files, and returns a function that reports whether one matched its
// name.
func (o *objects) read(ctx context.Context, files []versions) (func(*Entry) (bool, error), error) {
	var all []*Entry
	seen := map[Digest]bool{}
	for _, f := range files {
		if !seen[f.then.Digest] {
			seen[f.then.Digest] = true
			all = append(all, f.then)
		}
	}
	sound := make([]bool, len(all))
	err := inorder.Do(ctx, len(all), func(i int) (err error) {
		sound[i], err = o.known(all[i].Digest, all[i].Size, true)
		return err
	})
	for i, e := range all {
		seen[e.Digest] = sound[i]
	}
	return func(e *Entry) (bool, error) { return seen[e.Digest], nil }, err
}

// sound reads an object, and reports whether it matches its name. One that cannot be opened as
// an object does not.
func (o *objects) sound(d Digest, size int64) (bool, error) {
	there, err := o.has(d, size)
	if err != nil || !there {
		return false, err
	}
	f, err := o.object(&Entry{Digest: d, Size: size})
	if err != nil {
		if verify.IsMachineFault(err) {
			return false, err
		}
		return false, nil
	}
	defer f.Close()
	sum := sha256.New()
	err = o.s.sysHook.Do("read object", f.Name(), func() error {
		_, err := io.Copy(sum, io.LimitReader(f, size+1))
		return err
	})
	return err == nil && Digest(sum.Sum(nil)) == d, err
}

// list returns the objects of a shard.
func (o *objects) list(shard byte) (map[Digest]bool, error) {
	d, err := o.open(Digest{shard}, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := d.Names()
	all := make(map[Digest]bool, len(names))
	for _, name := range names {
		if digest, err := hexDigest(name); err == nil {
			all[digest] = true
		}
	}
	return all, err
}

// claim reports whether the caller must supply an object.
func (o *objects) claim(d Digest, size int64, in dir) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, claimed := o.fresh[d]; claimed {
		return false
	}
	o.fresh[d] = freshObject{in, size}
	return true
}

// few is up to how many things are synced one by one. Above it one syncfs is
// faster by far, though it waits for other people's data too.
const few = 16

// persist makes the fresh objects durable, moves them to their places, and makes
// the places durable.
func (o *objects) persist() error {
	digests := make([]Digest, 0, len(o.fresh))
	for d := range o.fresh {
		digests = append(digests, d)
	}
	slices.SortFunc(digests, func(a, b Digest) int { return cmp.Compare(string(a[:]), string(b[:])) })
	if err := o.syncFresh(digests); err != nil {
		return err
	}
	var shards [][]Digest
	for _, d := range digests {
		if n := len(shards); n == 0 || shards[n-1][0][0] != d[0] {
			shards = append(shards, nil)
		}
		shards[len(shards)-1] = append(shards[len(shards)-1], d)
		o.unsure[d[0]] = true
	}
	err := inorder.Do(context.Background(), len(shards), func(i int) error {
		for _, d := range shards[i] {
			if err := o.install(d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return o.syncPlaces()
}

func (o *objects) syncFresh(digests []Digest) error {
	if len(digests) > few {
		return o.incoming.SyncFS()
	}
	for _, d := range digests {
		f, _, err := o.fresh[d].in.OpenFile(d.name())
		if err != nil {
			return err
		}
		if err := errors.Join(o.s.sysHook.SyncFile(f), o.s.sysHook.CloseFile(f)); err != nil {
			return err
		}
	}
	return nil
}

func (o *objects) syncPlaces() error {
	if len(o.unsure) == 0 {
		return nil
	}
	if len(o.unsure) > few {
		return o.s.objects.SyncFS()
	}
	for b := range 256 {
		if !o.unsure[byte(b)] {
			continue
		}
		shard, err := o.open(Digest{byte(b)}, true)
		if err == nil {
			err = shard.Sync()
		}
		if err != nil {
			return err
		}
	}
	return o.s.objects.Sync()
}

// install moves a fresh object to its place. What is there already was not there before, or
// is damaged: it gives way.
func (o *objects) install(d Digest) error {
	fresh := o.fresh[d]
	shard, err := o.open(d, true)
	if err != nil {
		return err
	}
	err = fresh.in.rename(d.name(), shard, d.name())
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fresh.in.exchange(d.name(), shard, d.name())
}

// room makes a directory for a worker, which stays open until all is placed.
func (o *objects) room(name string) (dir, error) {
	room, err := o.incoming.make(name)
	if err != nil {
		return dir{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rooms = append(o.rooms, room)
	return room, nil
}

func (o *objects) close() {
	for _, room := range o.rooms {
		room.Close()
	}
	o.shardDirs.close()
}
