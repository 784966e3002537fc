package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
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
	value  float64 // their time divided by ours, or a limit by what was measured
	target float64 // what value is to reach; 0 for the record only
	ok     bool
}

// timed returns the row of a measurement whose target is a ratio of at least want, or when
// strict of more than want; 0 is not a target.
func timed(name string, p pair, want float64, strict bool) row {
	ratio := float64(best(p.theirs)) / float64(best(p.ours))
	r := row{
		name:   name,
		ours:   seconds(best(p.ours)),
		theirs: seconds(best(p.theirs)),
		ratio:  fmt.Sprintf("%.2f (median %.2f)", ratio, float64(median(p.theirs))/float64(median(p.ours))),
		want:   fmt.Sprintf(">= %.2f", want),
		value:  ratio,
		target: want,
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

// beyond returns the row of a measurement that may take less than extra longer than theirs.
func beyond(name string, p pair, extra time.Duration) row {
	r := timed(name, p, 1, true)
	limit := best(p.theirs) + extra
	r.want = fmt.Sprintf("< %s + %s", seconds(best(p.theirs)), seconds(extra))
	r.value = float64(limit) / float64(best(p.ours))
	r.ok = best(p.ours) < limit
	return r
}

// within returns the row of times whose target is to stay below limit.
func within(name string, times []time.Duration, limit time.Duration) row {
	return row{
		name:   name,
		ours:   seconds(best(times)),
		theirs: "-",
		ratio:  fmt.Sprintf("- (median %s)", seconds(median(times))),
		want:   "< " + seconds(limit),
		value:  float64(limit) / float64(best(times)),
		target: 1,
		ok:     best(times) < limit,
	}
}

// resident returns the row of a peak of memory, in KiB as the kernel counts it, whose target is
// to stay below limit bytes.
func resident(name string, peakKiB, limit int64) row {
	const mb = 1_000_000
	return row{
		name:   name,
		ours:   fmt.Sprintf("%d MB", peakKiB*kib/mb),
		theirs: "-",
		ratio:  "-",
		want:   fmt.Sprintf("< %d MB", limit/mb),
		value:  float64(limit) / float64(peakKiB*kib),
		target: 1,
		ok:     peakKiB*kib < limit,
	}
}

// perFile is resident with n files, of which each may take less than limit bytes; 0 is not a
// target.
func perFile(name string, usedKiB int64, n int, limit int64) row {
	r := resident(name, usedKiB, int64(n)*limit)
	r.ours = fmt.Sprintf("%d B a file", usedKiB*kib/int64(n))
	r.want = fmt.Sprintf("< %d B a file", limit)
	if limit == 0 {
		r.want, r.target, r.ok = "-", 0, true
	}
	return r
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
		_, err := fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.name, r.ours, r.theirs, r.ratio, r.want, r.verdict())
		if err != nil {
			return err
		}
	}
	return t.Flush()
}

// printMarkdown prints the rows as a Markdown table.
func printMarkdown(w io.Writer, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	lines := "| measurement | spectrum | the other | ratio | wanted | |\n|---|---:|---:|---:|---:|---|\n"
	escape := strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`)
	for _, r := range rows {
		verdict := r.verdict()
		if !r.ok {
			verdict = "**" + verdict + "**"
		}
		cells := []string{r.name, r.ours, r.theirs, r.ratio, r.want}
		for i, cell := range cells {
			cells[i] = escape.Replace(cell)
		}
		lines += "| " + strings.Join(cells, " | ") + " | " + verdict + " |\n"
	}
	_, err := io.WriteString(w, lines)
	return err
}

// verdict is empty for what is measured for the record only.
func (r row) verdict() string {
	switch {
	case !r.ok:
		return "MISSED"
	case r.target == 0:
		return "-"
	}
	return "ok"
}
