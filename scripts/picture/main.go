// Command picture draws the story of README.md, played with the real program, as an SVG of
// what a terminal would show.
//
// Two drawings of the same program are the same: IDs are replaced by others that follow from
// their order, times by one, and the directory is called /tmp/story. What is cut out of an
// output, or off a line, is shown as "…". Nothing else is changed.
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
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("picture: ")
	program := flag.String("bin", "bin/spectrum", "the `program`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	svg, err := picture(ctx, *program, ".")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(svg)
}

// picture plays the story of a repository with a program, and draws it.
func picture(ctx context.Context, program, repository string) (svg string, err error) {
	dir, err := os.MkdirTemp("", "picture")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the story has removed what it made, or failed
	shots, err := play(ctx, program, repository, dir)
	if err != nil {
		return "", err
	}
	return draw(shots), nil
}
