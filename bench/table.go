package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// row is one line of the result.
type row struct {
	name   string
	ours   string
	theirs string
	ratio  string
	want   string
	ok     bool
}

// timed gives the row of a measurement that wants a ratio of at least, or when strict of
// more than, want; 0 wants nothing.
func timed(name string, p pair, want float64, strict bool) row {
	ratio := float64(best(p.theirs)) / float64(best(p.ours))
	r := row{
		name:   name,
		ours:   seconds(best(p.ours)),
		theirs: seconds(best(p.theirs)),
		ratio:  fmt.Sprintf("%.2f (median %.2f)", ratio, float64(median(p.theirs))/float64(median(p.ours))),
		want:   fmt.Sprintf(">= %.2f", want),
		ok:     ratio >= want,
	}
	if want == 0 {
		r.want = "-"
	}
	if strict {
		r.want = fmt.Sprintf("> %.2f", want)
		r.ok = ratio > want
	}
	return r
}

// resident gives the row of a peak of memory, in KiB as the kernel counts it, that wants to
// stay below limit bytes.
func resident(name string, peakKiB, limit int64) row {
	const mb = 1_000_000
	return row{
		name:   name,
		ours:   fmt.Sprintf("%d MB", peakKiB*kib/mb),
		theirs: "-",
		ratio:  "-",
		want:   fmt.Sprintf("< %d MB", limit/mb),
		ok:     peakKiB*kib < limit,
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

func missed(rows []row) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return !r.ok })
}

func printRows(w io.Writer, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(t, "measurement\tspectrum\tthe other\tratio\twant\t"); err != nil {
		return err
	}
	for _, r := range rows {
		verdict := "ok"
		if !r.ok {
			verdict = "MISSED"
		}
		_, err := fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.name, r.ours, r.theirs, r.ratio, r.want, verdict)
		if err != nil {
			return err
		}
	}
	return t.Flush()
}
