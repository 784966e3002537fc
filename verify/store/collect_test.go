package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/farstore"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

const grace = time.Hour

func collect(t *testing.T, s *Store) Collected {
	t.Helper()
	done, err := s.Collect(t.Context(), grace, false)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// TestCollect: a pack that no run needs is marked after the grace period, and removed after another.
func TestCollect(t *testing.T) {
	s, _, bucket := far(t)
	project := bundletest.New(t)
	kept, gone := verified(t, project.Run("run-1", map[string]string{"a": random(1, 100)})), verified(t, project.Run("run-2", map[string]string{"b": random(2, 100)}))
	mustPush(t, s, kept, state(t))
	records := state(t)
	mustPush(t, s, gone, records)
	bucket.Set("team/runs/"+gone.Root(), nil)
	for step, want := range []Collected{
		{Runs: 1, Packs: 1, Waiting: 1}, {Runs: 1, Packs: 1, Marked: 1}, {Runs: 1, Packs: 1, Waiting: 1}, {Runs: 1, Packs: 1, Removed: 1, Freed: 100}, {Runs: 1, Packs: 1},
	} {
		if done := collect(t, s); done != want {
			t.Errorf("step %d: %+v, want %+v", step, done, want)
		}
		if step%2 == 0 {
			bucket.Pass(2 * grace)
		}
	}
	if _, err := pull(t, s, kept.Root()); err != nil {
		t.Error(err)
	}
	for _, key := range bucket.Keys() {
		if strings.Contains(key, "/gc/") && !strings.HasSuffix(key, clockKey) {
			t.Errorf("%s is left over", key)
		}
	}
	mustPush(t, s, gone, records) // its record has a pack that is gone
	if _, err := pull(t, s, gone.Root()); err != nil {
		t.Error(err)
	}
}

// TestMarkedPack: a push does not rely on a marked pack, and a pack that is needed again keeps no mark.
func TestMarkedPack(t *testing.T) {
	s, _, bucket := far(t)
	b := verified(t, bundletest.New(t).Run("run-1", map[string]string{"a": random(1, 100)}))
	records := state(t)
	mustPush(t, s, b, records)
	bucket.Set("team/runs/"+b.Root(), nil)
	bucket.Pass(2 * grace)
	collect(t, s) // marks
	for _, with := range []bool{true, false} {
		if with { // as the same user, then as another one
			mustPush(t, s, b, records)
		} else {
			mustPush(t, s, b, state(t))
		}
		packs := 0
		for _, key := range bucket.Keys() {
			if strings.Contains(key, "/packs/") {
				packs++
			}
		}
		if packs < 2 {
			t.Errorf("the marked pack is relied on: %q", bucket.Keys())
		}
	}
	bucket.Pass(2 * grace)
	if done := collect(t, s); done.Removed != 1 {
		t.Errorf("%+v", done)
	}
	if _, err := pull(t, s, b.Root()); err != nil {
		t.Error(err)
	}
}

// TestCollectionDuringPush runs a collection of every phase at each request of a push. The run is whole
// at the end, whatever the order.
func TestCollectionDuringPush(t *testing.T) {
	t.Parallel()
	project := bundletest.New(t)
	outputs := map[string]string{"a": random(1, 3000), "b": random(2, 3000)}
	first := verified(t, project.Run("run-1", outputs))
	second := verified(t, project.Run("run-2", outputs))
	raced := 0
	for n := 1; ; n++ {
		bucket := farstore.NewBucket("runs")
		direct := httptest.NewServer(bucket)
		proxy := farstore.NewProxy(bucket)
		server := httptest.NewServer(proxy)
		address := func(of *httptest.Server) string { return "s3://runs/team?endpoint=" + of.URL }
		collector, pusher := quick(t, address(direct)), quick(t, address(server))
		records := state(t)
		mustPush(t, pusher, first, records)
		bucket.Set("team/runs/"+first.Root(), nil) // its pack is garbage now, which the record knows
		bucket.Pass(2 * grace)
		if n%2 == 0 { // marked before the push begins
			collect(t, collector)
			bucket.Pass(2 * grace)
		}
		seen := 0
		proxy.Break(func(*http.Request) farstore.Fault {
			seen++
			if seen != (n+1)/2 {
				return nil
			}
			return func(w http.ResponseWriter, r *http.Request, server http.Handler) {
				for range 2 { // marks, and removes
					if _, err := collector.Collect(t.Context(), grace, false); err != nil {
						t.Error(err)
					}
					bucket.Pass(2 * grace)
				}
				server.ServeHTTP(w, r)
			}
		})
		mustPush(t, pusher, second, records)
		if _, err := pull(t, collector, second.Root()); err != nil {
			t.Errorf("a collection at request %d: %v", (n+1)/2, err)
		}
		collect(t, collector)
		bucket.Pass(2 * grace)
		collect(t, collector)
		if _, err := pull(t, collector, second.Root()); err != nil {
			t.Errorf("a collection at request %d, and another one: %v", (n+1)/2, err)
		}
		direct.Close()
		server.Close()
		if seen < (n+1)/2 {
			break
		}
		raced++
	}
	if raced < 8 {
		t.Errorf("%d races: a push has more requests", raced)
	}
}

// TestCollectionLock: one collection at a time, and one that was killed is taken over only after the
// grace period and by request.
func TestCollectionLock(t *testing.T) {
	s, _, bucket := far(t)
	bucket.Set("team/"+lockKey, []byte("another"))
	for _, unlock := range []bool{false, true} {
		var locked *LockedError
		if _, err := s.Collect(t.Context(), grace, unlock); !errors.As(err, &locked) {
			t.Errorf("%v", err)
		}
	}
	bucket.Pass(2 * grace)
	if _, err := s.Collect(t.Context(), grace, false); err == nil {
		t.Error("an old lock is ignored")
	}
	if _, err := s.Collect(t.Context(), grace, true); err != nil {
		t.Error(err)
	}
	if bucket.Content("team/"+lockKey) != nil {
		t.Error("the lock is left over")
	}
}

// TestUnreadableRun: nothing is removed while a run cannot be read.
func TestUnreadableRun(t *testing.T) {
	s, _, bucket := far(t)
	b := verified(t, bundletest.New(t).Run("run-1", map[string]string{"a": random(1, 100)}))
	mustPush(t, s, b, state(t))
	bucket.Set("team/runs/"+b.Root(), nil)
	bucket.Pass(2 * grace)
	collect(t, s)
	bucket.Set("team/runs/"+b.Root(), []byte("what is this"))
	bucket.Pass(2 * grace)
	before := len(bucket.Keys())
	if _, err := s.Collect(t.Context(), grace, false); !isWrong(err) {
		t.Errorf("%v", err)
	}
	if len(bucket.Keys()) != before {
		t.Errorf("%q", bucket.Keys())
	}
}

// vanishing is a driver whose lock is removed by its collection before each look at it, some times.
type vanishing struct {
	Driver
	times int
}

func (v *vanishing) Stat(ctx context.Context, key string) (Object, error) {
	if key == lockKey && v.times > 0 {
		v.times--
		if err := v.Delete(ctx, key); err != nil {
			return Object{}, err
		}
	}
	return v.Driver.Stat(ctx, key)
}

// TestVanishingLock: a lock that is removed while another collection looks at it is taken, and one that
// comes and goes all the time is a locked store.
func TestVanishingLock(t *testing.T) {
	s, _, bucket := far(t)
	driver := s.driver
	bucket.Set("team/"+lockKey, []byte("another"))
	s.driver = &vanishing{driver, 1}
	collect(t, s)
	if bucket.Content("team/"+lockKey) != nil {
		t.Error("the lock is left over")
	}
	s.driver = &relocking{driver}
	var locked *LockedError
	if _, err := s.Collect(t.Context(), grace, true); !errors.As(err, &locked) {
		t.Errorf("%v", err)
	}
}

// relocking is a driver in which others have the lock whenever it is to be made, and not when it is looked at.
type relocking struct{ Driver }

func (r *relocking) PutIfAbsent(ctx context.Context, key string, content []byte) error {
	if key == lockKey {
		return fs.ErrExist
	}
	return r.Driver.PutIfAbsent(ctx, key, content)
}

func (r *relocking) Stat(ctx context.Context, key string) (Object, error) {
	if key == lockKey {
		return Object{}, fs.ErrNotExist
	}
	return r.Driver.Stat(ctx, key)
}

// TestStoppedCollection: a collection that is stopped right before it removes a pack, for longer than
// the grace period, removes nothing: another one took over, and a push has sent that pack again.
func TestStoppedCollection(t *testing.T) {
	for stop := 1; ; stop++ {
		s, _, bucket := far(t)
		project := bundletest.New(t)
		b := verified(t, project.Run("run-1", map[string]string{"a": random(1, 100)}))
		mustPush(t, s, b, state(t))
		bucket.Set("team/runs/"+b.Root(), nil)
		bucket.Pass(2 * grace)
		collect(t, s) // marks
		bucket.Pass(2 * grace)
		looks, skew := 0, time.Duration(0)
		_, err := s.collect(t.Context(), grace, false, func() time.Time {
			if looks++; looks == stop {
				skew = 2 * grace
				bucket.Pass(2 * grace)
				if _, err := s.Collect(t.Context(), grace, true); err != nil {
					t.Fatal(err)
				}
				mustPush(t, s, b, state(t))
			}
			return time.Now().Add(skew)
		})
		if looks < stop {
			if err != nil {
				t.Error(err)
			}
			break
		}
		if _, pullErr := pull(t, s, b.Root()); pullErr != nil {
			t.Errorf("stopped at look %d: %v; the collection: %v", stop, pullErr, err)
		}
		if stop > 10 {
			t.Fatal("no end")
		}
	}
}

// TestLongCollection: a collection that takes longer than the grace period keeps its lock new.
func TestLongCollection(t *testing.T) {
	s, _, bucket := far(t)
	project := bundletest.New(t)
	for n := range uint64(4) {
		b := verified(t, project.Run(fmt.Sprintf("run-%d", n), map[string]string{"a": random(n, 100)}))
		mustPush(t, s, b, state(t))
		bucket.Set("team/runs/"+b.Root(), nil)
	}
	bucket.Pass(2 * grace)
	collect(t, s)
	bucket.Pass(2 * grace)
	now := time.Now()
	done, err := s.collect(t.Context(), grace, false, func() time.Time {
		now = now.Add(grace / 5)
		return now
	})
	if err != nil || done.Removed != 4 {
		t.Errorf("%+v, %v", done, err)
	}
}
