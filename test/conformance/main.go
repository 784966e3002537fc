// Command conformance runs the conformance suite against any program with the
// command line of package suite.
//
//	go run ./test/conformance -bin PATH [-dir DIR] [-run REGEXP] [-v]
//
// It ends with 1 when a case fails, and when there is none.
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
	"regexp"
	"slices"
	"syscall"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
)

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "", "the `program` under test")
	flag.StringVar(&o.dir, "dir", "testdata/conformance", "the `directory` of the cases")
	flag.StringVar(&o.run, "run", "", "only cases whose name matches this `regexp`")
	flag.BoolVar(&o.verbose, "v", false, "name the cases that pass, too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

type options struct {
	bin, dir, run string
	verbose       bool
}

// run runs the cases and fails unless there are some and all of them pass.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.bin == "" {
		return fmt.Errorf("-bin says which program is tested")
	}
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return err
	}
	cases, err := chosen(o)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	var printing error
	say := func(format string, args ...any) {
		_, err := fmt.Fprintf(out, format, args...)
		printing = errors.Join(printing, err)
	}
	failed := 0
	r := suite.Runner{Bin: bin, Dir: dir}
	commands := r.RunAll(ctx, cases, func(c suite.Case, err error) {
		switch {
		case err != nil:
			failed++
			say("FAIL %s\n%v\n\n", c.Name, err)
		case o.verbose:
			say("ok   %s\n", c.Name)
		}
	})
	say("%d cases, %d commands, %d cases failed\n", len(cases), commands, failed)
	if failed > 0 {
		return fmt.Errorf("%d of %d cases failed", failed, len(cases))
	}
	return errors.Join(ctx.Err(), printing)
}

func chosen(o options) ([]suite.Case, error) {
	pattern, err := regexp.Compile(o.run)
	if err != nil {
		return nil, err
	}
	cases, err := suite.Load(o.dir)
	if err != nil {
		return nil, err
	}
	cases = slices.DeleteFunc(cases, func(c suite.Case) bool { return !pattern.MatchString(c.Name) })
	if len(cases) == 0 {
		return nil, fmt.Errorf("no case in %q matches %q", o.dir, o.run)
	}
	return cases, nil
}
