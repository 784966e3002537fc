package staging

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/blocklog"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// onVolume runs a part of a test whose handles are closed when it returns: a volume is unmounted
// only then.
func onVolume(t *testing.T, name string, do func(t *testing.T)) {
	t.Helper()
	if !t.Run(name, do) {
		t.FailNow()
	}
}

// TestReplacePower: the power goes after each write of a commit that replaces files, of one that is
// undone, and of a recovery that goes back or forward. Each replaced file is there, the very inode,
// or the new one with all that it took over.
func TestReplacePower(t *testing.T) {
	type cut struct {
		harness.Format
		end  string
		call string // at which the commit is killed, and recovered while the disk logs
	}
	var all []cut
	for _, f := range []harness.Format{harness.Ext4Large, harness.XFS, harness.Btrfs} {
		all = append(all, cut{f, "commit", ""}, cut{f, "undo", ""}, cut{f, "back", "create " + committedName + newSuffix}, cut{f, "forward", "rename 0"})
	}
	for _, c := range sample.Pick(t, 2, all) {
		t.Run(c.Name+", "+c.end, func(t *testing.T) {
			v := harness.MountedVolume(t, c.Format)
			root := filepath.Join(v.Path, "root")
			var before picture
			onVolume(t, "make", func(t *testing.T) {
				sc := replaceCommit(t, root)
				before = take(t, root)
				if c.call != "" {
					sc.abandon(c.call)
				}
			})
			v.Unmount(t)
			store := blocklog.Serve(t, v.Image)
			must(t, v.MountFile(store.Disk))
			t.Cleanup(func() { _ = blocklog.Unmount(v.Path) }) // before the store is stopped
			store.Mark(t, "begin")
			onVolume(t, c.end, func(t *testing.T) {
				sc := replaceCommit(t, root)
				switch c.end {
				case "commit":
					must(t, sc.commit())
				case "undo":
					sc.hook = failCheck("theirs/file", 2)
					if e := wantStep(t, sc.commit(), StepVerify, "theirs/file"); e.Rollback != nil {
						t.Error(e)
					}
				default:
					_, err := sc.recover(Automatic)
					must(t, err)
				}
			})
			store.Mark(t, "end")
			v.Unmount(t)
			records := store.Stop(t)
			begin, end := blocklog.Find(records, "begin"), blocklog.Find(records, "end")
			if begin == 0 || end < begin+4 {
				t.Fatalf("only between the records %d and %d", begin, end)
			}
			sum := &harness.Tally{}
			replay, stride := blocklog.NewReplay(v.Image, records), sample.Every(t, max((len(records)-begin)/8, 1))
			for i := 0; begin+stride.At(i) <= len(records); i++ {
				n := begin + stride.At(i)
				image := filepath.Join(filepath.Dir(v.Image), "replayed")
				lost, err := replay.Image(image, n, uint64(i%8))
				must(t, err)
				must(t, v.MountFile(image))
				onVolume(t, fmt.Sprintf("%d of %d, %d lost", n, len(records), lost), func(t *testing.T) {
					after := afterLoss(t, root, before)
					if wanted := c.end == "commit" || c.end == "forward"; n >= end && after != wanted || c.call != "" && after != wanted {
						t.Errorf("after: %v", after)
					}
					sum.Add(fmt.Sprint("after: ", after))
				})
				v.Unmount(t)
			}
			t.Log(sum)
		})
	}
}

// afterLoss recovers a root of replaceCommit, which has to be as it was or complete, and reports
// which.
func afterLoss(t *testing.T, root string, before picture) (after bool) {
	t.Helper()
	sc := replaceCommit(t, root)
	out, err := sc.recover(Automatic)
	must(t, err)
	_, err = os.Lstat(sc.at("RESTORE_MANIFEST.json"))
	if after = err == nil; after {
		sc.done(before)
	} else {
		sameTree(t, before, root)
	}
	if len(out) == 1 && (out[0].Result == Completed) != after && out[0].Result != Cleared {
		t.Error(out)
	}
	return after
}

// TestReplaceSpace: a commit that replaces files ends well or as if it had not been on a disk with
// ever less room or inodes, and the room comes back; so does a recovery on a disk without any.
func TestReplaceSpace(t *testing.T) {
	for _, f := range sample.Pick(t, 2, []harness.Format{harness.Tmpfs, harness.Ext4, harness.TmpfsFew, harness.Ext4Few}) {
		t.Run(f.Name, func(t *testing.T) {
			v := harness.MountedVolume(t, f)
			v.PrepareFill(t)
			few := f.Name == harness.TmpfsFew.Name || f.Name == harness.Ext4Few.Name
			leave, steps := func(i int) { v.LeaveBytes(t, int64(i)*4<<10) }, 40
			if few {
				leave, steps = func(i int) { v.LeaveInodes(t, i) }, 30
			}
			ends, stride := &harness.Tally{}, sample.Every(t, 5)
			for i := range steps {
				if !stride.Has(i + 1) {
					continue
				}
				root := filepath.Join(v.Path, fmt.Sprint("root", i))
				sc := replaceCommit(t, root)
				before := take(t, root)
				leave(i)
				free := v.Free(t)
				if err := sc.commit(); err == nil {
					ends.Add("done")
					sc.done(before)
				} else {
					ends.Add("full")
					if e := failure(t, err); !errors.Is(err, unix.ENOSPC) || e.Rollback != nil {
						t.Errorf("%d: %v", i, err)
					}
					sameTree(t, before, root)
					v.DemandFree(t, free)
				}
				v.Release(t)
				must(t, os.RemoveAll(root))
			}
			ends.DemandKinds(t, 2, "done")
			_, calls := traceOf(t, &sweeper{t: t, base: filepath.Join(v.Path, "trace"), make: replaceCommit})
			for _, n := range tries(t, 6, calls) {
				root := filepath.Join(v.Path, fmt.Sprint("killed", n))
				onVolume(t, fmt.Sprintf("killed at %d of %d", n, calls), func(t *testing.T) {
					sc := replaceCommit(t, root)
					before, done := take(t, root), 0
					_ = sc.run(func(op, path string, f func() error) error {
						if done++; done >= n && op != "close" { // a kill gives all handles up
							return unix.EIO
						}
						return f()
					})
					if done < n {
						t.Fatal("it was not reached")
					}
					leave(0)
					_ = afterLoss(t, root, before)
				})
				v.Release(t)
				must(t, os.RemoveAll(root))
			}
		})
	}
}
