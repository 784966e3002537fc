// Command picture draws a session of the real program: it runs the demo in a
// directory of its own, and writes what a terminal would show as an SVG.
//
// Two drawings of the same program are the same: ids are replaced by others that
// follow from their order, and the directory is called /tmp/demo. What is cut out of
// an output, or off a line, is shown as "…". Nothing else is changed.
//
//	make picture
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("picture: ")
	program := flag.String("bin", "bin/spectrum", "the `program`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	svg, err := picture(ctx, *program)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(svg)
}

// picture runs the session with a program, and draws it.
func picture(ctx context.Context, program string) (svg string, err error) {
	program, err = filepath.Abs(program)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "picture")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a view that could not be ended keeps it; that is an error already
	shots, err := play(ctx, program, dir)
	if err != nil {
		return "", err
	}
	return draw(shots), nil
}
