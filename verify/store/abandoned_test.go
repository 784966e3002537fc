package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spectrumfs/spectrum/test/farstore"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/hungfs"
	"github.com/spectrumfs/spectrum/verify/blocktable"
)

// inPacks are outputs each of which is in packs of its own.
func inPacks(n int) map[string]string {
	outputs := map[string]string{}
	for i := range n {
		outputs[fmt.Sprintf("out/%02d", i)] = random(uint64(i)+1, 60<<10)
	}
	return outputs
}

// TestAbandonedReaders: readers that have gone hold no place, also while the store still does not answer
// them: the next reader is served.
func TestAbandonedReaders(t *testing.T) {
	const apart = 6 // so that what is requested ahead is of no other reader
	outputs := inPacks(apart * (flightsAtOnce + 1))
	b := verified(t, withBlocks(t, outputs))
	dir := t.TempDir()
	mustPush(t, quick(t, "file://"+dir), b, state(t))

	proxy := farstore.NewProxy(httpFiles(dir))
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	asked := make(chan struct{}, flightsAtOnce)
	hung := hungfs.Mount(t, dir)
	for _, test := range []struct {
		address   string
		hang      func()
		hasAll    func() bool // all places are those of requests that hang
		serveNext func()
	}{
		{
			server.URL,
			func() {
				proxy.Break(farstore.On(http.MethodGet, "/packs/", flightsAtOnce, func(w http.ResponseWriter, r *http.Request, s http.Handler) {
					asked <- struct{}{}
					farstore.Silence(w, r, s)
				}))
			},
			func() bool { return len(asked) == flightsAtOnce },
			func() {},
		},
		{"file://" + hung.Dir, hung.HangReads, func() bool { return hung.Waiting() >= flightsAtOnce }, hung.AnswerNext},
	} {
		v := view(t, quickWith(t, test.address, time.Hour), b.Root())
		test.hang()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		for i := range flightsAtOnce {
			go func() {
				_, err := v.read(ctx, v.names[apart*i], 0, 10)
				ended <- err
			}()
		}
		harness.Eventually(t, "all places are taken", test.hasAll)
		cancel()
		for range flightsAtOnce {
			if err := <-ended; !errors.Is(err, context.Canceled) || isFault(err) {
				t.Errorf("%s: %v", test.address, err)
			}
		}
		test.serveNext()
		ctx, cancel = context.WithTimeout(t.Context(), deadline)
		name := v.names[apart*flightsAtOnce]
		if got, err := v.read(ctx, name, 0, 10); err != nil || got != outputs[name][:10] {
			t.Errorf("%s: the next reader: %q, %v", test.address, got, err)
		}
		cancel()
	}
	hung.Answer()
	harness.Eventually(t, "no call is left in the kernel", func() bool { return hung.Waiting() == 0 })
}

// TestReaderWithoutPlace: the patience with a store begins when a read begins, and not when there is a
// place for its request.
func TestReaderWithoutPlace(t *testing.T) {
	b := verified(t, withBlocks(t, map[string]string{"a": random(1, 3000)}))
	dir := t.TempDir()
	mustPush(t, quick(t, "file://"+dir), b, state(t))
	v := view(t, quickWith(t, "file://"+dir, shortly), b.Root())
	for range flightsAtOnce {
		v.flights <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if _, err := v.read(ctx, "a", 0, 10); !isFault(err) || !errors.Is(err, errStalled) {
		t.Errorf("%v", err)
	}
}

// lateStore is a driver of a directory that answers for packs after some time, or never.
type lateStore struct {
	Driver
	late  atomic.Int64 // how late an answer is, as a time.Duration
	wrong atomic.Int64 // how many of the next answers have wrong bytes
	open  atomic.Int64 // requests for packs that have no answer yet
}

const never = time.Duration(1<<63 - 1)

func (l *lateStore) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if !strings.HasPrefix(key, packsPrefix) {
		return l.Driver.Get(ctx, key, off, n)
	}
	l.open.Add(1)
	defer l.open.Add(-1)
	if late := time.Duration(l.late.Load()); late == never {
		<-ctx.Done()
	} else {
		select {
		case <-time.After(late):
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return nil, Passing(ctx.Err())
	}
	if l.wrong.Add(-1) >= 0 {
		counter(ctx)(n)
		return io.NopCloser(strings.NewReader(strings.Repeat("\x00", int(n)))), nil
	}
	return l.Driver.Get(ctx, key, off, n)
}

// inTime calls do with a view of a run in a store whose answers are late, by the clock of a test that
// passes no time itself.
func inTime(t *testing.T, outputs map[string]string, patience time.Duration, do func(t *testing.T, v *farView, late *lateStore)) {
	b := verified(t, withBlocks(t, outputs))
	dir := t.TempDir()
	mustPush(t, quick(t, "file://"+dir), b, state(t))
	synctest.Test(t, func(t *testing.T) {
		late := &lateStore{Driver: &files{dir}}
		v := view(t, New("late://"+filepath.Base(dir), late, patience), b.Root())
		do(t, v, late)
		v.Close()
		synctest.Wait()
		if n, places := late.open.Load(), len(v.flights)+len(v.ahead); n != 0 || places != 0 {
			t.Errorf("%d requests and %d places are left", n, places)
		}
	})
}

// TestOnePatienceForARead: a read has its error when the patience with the store has ended, also if it
// needs many requests, waits for those of others, or reads a block once more.
func TestOnePatienceForARead(t *testing.T) {
	const patience = 30 * time.Second
	outputs := inPacks(2 * flightsAtOnce)
	outputs["big"] = random(99, 2<<20)
	for name, set := range map[string]func(late *lateStore){
		"silent": func(late *lateStore) { late.late.Store(int64(never)) },
		"wrong and late": func(late *lateStore) {
			late.late.Store(int64(patience / 4))
			late.wrong.Store(1 << 40)
		},
	} {
		inTime(t, outputs, patience, func(t *testing.T, v *farView, late *lateStore) {
			set(late)
			cache := blocktable.NewCache(1 << 20)
			read := func(i int, off int64, n int) {
				began := time.Now()
				reader := v.table.NewReader(i, v.digests[i], v.Open(i)).Cached(cache, nil)
				_, err := reader.ReadContext(t.Context(), make([]byte, n), off)
				if !isFault(err) && !isMismatch(err) {
					t.Errorf("%s: %s, %d bytes at %d: %v", name, v.names[i], n, off, err)
				}
				if took, most := time.Since(began), patience+timeOf(int64(n)); took > most {
					t.Errorf("%s: %s, %d bytes at %d: %v, and no error until %v", name, v.names[i], n, off, most, took)
				}
			}
			var readers sync.WaitGroup
			for i := range v.names { // "big" is the first one
				readers.Go(func() { read(i, 0, 60<<10) })
				readers.Go(func() { read(i, 100, 200) })
			}
			for off := int64(0); off < 1<<20; off += 128 << 10 {
				readers.Go(func() { read(0, off, 128<<10) })
				readers.Go(func() { read(0, off, 1<<20) })
			}
			readers.Wait()
		})
	}
}

// TestFlightEndsWithItsLastReader: a request ends when the last of its readers has gone, and not before;
// what is requested ahead has no reader to lose.
func TestFlightEndsWithItsLastReader(t *testing.T) {
	inTime(t, map[string]string{"a": random(1, 60<<10)}, time.Hour, func(t *testing.T, v *farView, late *lateStore) {
		late.late.Store(int64(never))
		ended := make(chan error, 2)
		var leave [2]context.CancelFunc
		for i := range leave {
			ctx, cancel := context.WithCancel(t.Context())
			leave[i] = cancel
			go func() {
				_, err := v.read(ctx, "a", 0, 10)
				ended <- err
			}()
			synctest.Wait()
		}
		for i, want := range []int64{1, 0} {
			leave[i]()
			synctest.Wait()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("reader %d: %v", i, err)
			}
			if n := late.open.Load(); n != want {
				t.Errorf("reader %d has gone: %d requests, want %d", i, n, want)
			}
		}
		late.late.Store(0)
		if _, err := v.read(t.Context(), "a", 0, 10); err != nil {
			t.Errorf("the next reader: %v", err)
		}
	})
}

// TestLateFlightOfAnother: a reader that waits for a request of another one asks for itself when half of
// its patience has passed.
func TestLateFlightOfAnother(t *testing.T) {
	const patience = 30 * time.Second
	inTime(t, map[string]string{"a": random(1, 60<<10)}, patience, func(t *testing.T, v *farView, late *lateStore) {
		late.late.Store(int64(never))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			_, _ = v.read(ctx, "a", 0, 10)
			close(ended)
		}()
		synctest.Wait()
		late.late.Store(0)
		began := time.Now()
		if _, err := v.read(t.Context(), "a", 0, 10); err != nil || time.Since(began) > patience/2 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		cancel()
		<-ended
	})
}
