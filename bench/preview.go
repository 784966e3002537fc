package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// beyondPreview is how much longer than verify a preview may take.
const beyondPreview = 2 * time.Second

// previews measures the preview of many small files, as report, as JSON and as page,
// against verify of the same: what deciding and showing costs.
func (b *bench) previews(ctx context.Context) (rows []row, err error) {
	err = b.withSet(ctx, set{name: "preview", n: b.sizes.small, size: smallSize}, func(s set) error {
		for _, shown := range []struct {
			name  string
			flags func(root string) []string
		}{
			{"report", func(string) []string { return nil }},
			{"JSON", func(string) []string { return []string{"--json"} }},
			{"page", func(root string) []string {
				return []string{"--html", filepath.Join(filepath.Dir(root), filepath.Base(root)+".html")}
			}},
		} {
			p, err := b.previewAgainst(ctx, s, shown.flags)
			if err != nil {
				return err
			}
			rows = append(rows, beyond(fmt.Sprintf("preview of %d files, %s: verify, and 2 s", s.n, shown.name), p, beyondPreview))
		}
		return nil
	})
	return rows, err
}

func (b *bench) previewAgainst(ctx context.Context, s set, flags func(root string) []string) (pair, error) {
	verify := func() error { return b.spectrum.verify(ctx, s) }
	if err := verify(); err != nil {
		return pair{}, err
	}
	return interleave(ctx, b.rounds,
		func(ctx context.Context, _ int) (time.Duration, error) {
			return b.intoEmpty(ctx, func(root string) (time.Duration, error) {
				return clock(func() error {
					_, err := b.spectrum.preview(ctx, s, root, flags(root)...)
					return err
				})
			})
		},
		func(context.Context, int) (time.Duration, error) { return clock(verify) })
}
