// Command bench measures spectrum against the tools people would use without it, on the
// same files, in one run, with a warm cache, and prints a table of ratios:
//
//   - verify against openssl (one process per core) and against sha256sum -c
//   - a durable commit against cp -a followed by sync -f, and against one thread that copies and
//     hashes file after file and syncs nothing
//   - a preview of many files against verify of the same
//   - one syncfs against an fsync of each file
//   - first, second, random and concurrent reads through the view, and find and ls -lR over
//     many files, against go-fuse's own loopback
//   - a lazy view against a verified one and against verify
//   - first reads by cat and tar against restic mount, when restic is installed
//   - peak resident memory of verify and mount with many outputs
//   - the rollback of a commit against rm -r and sync -f, the restore of a snapshot against cp -a
//     and sync -f
//   - a view of a million files: how long until it is there, its first ls, its memory
//
// Each measurement is repeated, ours and theirs in turn, and the best of each counts: noise
// only ever adds time. A ratio is their time divided by ours, so that more is better.
//
// The rows are printed as text or, for the documentation, as Markdown.
// The exit status is 1 when a target was missed or something failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

var errMissed = errors.New("a target was missed")

// options are those of the command line.
type options struct {
	bin      string // the spectrum binary
	loopback string // the binary of bench/loopback
	dir      string // where the data goes
	only     string // comma separated names of sections; empty is all
	markdown bool
	rounds   int
	sizes    sizes
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	opts, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rows, err := measureAll(ctx, opts)
	err = errors.Join(err, report(stdout, rows, opts.markdown))
	if err == nil && missed(rows) {
		err = errMissed
	}
	return err
}

func report(stdout io.Writer, rows []row, markdown bool) error {
	if markdown {
		return printMarkdown(stdout, rows)
	}
	return printRows(stdout, rows)
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.bin, "bin", "bin/spectrum", "the spectrum `binary`")
	flags.StringVar(&o.loopback, "loopback", "bin/loopback", "the `binary` of bench/loopback")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "put the data into a new directory under `DIR`")
	flags.StringVar(&o.only, "only", "", "run only these `sections`: "+strings.Join(sectionNames(), ","))
	flags.BoolVar(&o.markdown, "markdown", false, "print the rows as a table in Markdown")
	flags.IntVar(&o.rounds, "rounds", 5, "repeat each measurement `N` times")
	flags.IntVar(&o.sizes.bigMiB, "big-mib", 256, "`MiB` of each of the four big files")
	flags.IntVar(&o.sizes.small, "small", 20_000, "how `many` files of 8 KiB")
	flags.IntVar(&o.sizes.viewMiB, "view-mib", 512, "`MiB` of each of the two files that are read through the view")
	flags.IntVar(&o.sizes.tiny, "tiny", 100_000, "how `many` files of 1 KiB")
	flags.IntVar(&o.sizes.million, "million", 1_000_000, "how `many` files of 100 bytes")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 || o.rounds < 1 {
		return options{}, errors.New("no arguments are taken, and -rounds is at least 1")
	}
	return o.resolve()
}

// resolve makes the paths absolute, since the measured programs run elsewhere.
func (o options) resolve() (options, error) {
	for _, p := range []*string{&o.bin, &o.loopback, &o.dir} {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return options{}, err
		}
		if _, err := os.Stat(abs); err != nil {
			return options{}, err
		}
		*p = abs
	}
	return o, nil
}
