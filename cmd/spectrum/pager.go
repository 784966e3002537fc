package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// paged are the flags of a command whose result may be long.
type paged struct {
	color   string
	noPager bool
}

func (p *paged) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.color, "color", "auto", "`when` there are colours: auto (on a terminal), always or never")
	cmd.Flags().BoolVar(&p.noPager, "no-pager", false, "on a terminal, print without a pager (SPECTRUM_PAGER, PAGER)")
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp))
}

func (p *paged) check(cmd *cobra.Command) error {
	if p.color != "auto" && p.color != "always" && p.color != "never" {
		return usage(cmd, "--color %q is not auto, always or never", p.color)
	}
	return nil
}

// show runs print with stdout, or on a terminal with a pager in between, and waits for that.
func (p *paged) show(a *app, print func(w *diffWriter) error) error {
	terminal := onTerminal(a.stdout)
	w := &diffWriter{color: p.color == "always" || p.color == "auto" && terminal && colored(), width: 80}
	w.exact = !terminal && !w.color
	command := pagerCommand()
	if f, ok := a.stdout.(*os.File); ok && terminal {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			w.width = columns
		}
	}
	if !terminal || p.noPager || command == "" {
		w.out = bufio.NewWriter(a.stdout)
		return print(w)
	}
	a.bar().clear()
	return throughPager(command, a, func(to io.Writer) error {
		w.out = bufio.NewWriter(to)
		return print(w)
	})
}

// pagerCommand is what the environment says, or less where that is there; "" is none.
func pagerCommand() string {
	for _, name := range []string{"SPECTRUM_PAGER", "PAGER"} {
		if command, ok := os.LookupEnv(name); ok {
			if command == "cat" {
				return ""
			}
			return command
		}
	}
	for _, dir := range []string{"/usr/bin", "/bin", "/usr/local/bin"} { // PATH may lead where another user serves
		if path, err := exec.LookPath(dir + "/less"); err == nil {
			return path
		}
	}
	return ""
}

// The exit statuses of a shell that could not start a command. What else a pager ends with,
// by Ctrl-C for one, is no concern of ours.
const (
	notRunnable = 126
	notFound    = 127
)

// throughPager gives print the input of a pager. That its user has seen enough is no error.
func throughPager(command string, a *app, print func(io.Writer) error) error {
	pager := exec.Command("/bin/sh", "-c", command) //nolint:noctx // Ctrl-C is for the pager too, which decides when it ends
	pager.Stdout, pager.Stderr = a.stdout, a.stderr
	pager.Env = os.Environ()
	if _, ok := os.LookupEnv("LESS"); !ok {
		pager.Env = append(pager.Env, "LESS=FRX")
	}
	input, err := pager.StdinPipe()
	if err == nil {
		err = pager.Start()
	}
	if err != nil {
		return fmt.Errorf("the pager %q: %w", command, err)
	}
	printed := print(input)
	if errors.Is(printed, syscall.EPIPE) {
		printed = nil
	}
	_ = input.Close()
	err = pager.Wait()
	if status := pager.ProcessState.ExitCode(); err != nil && printed == nil && (status == notRunnable || status == notFound) {
		return refusedHint(fmt.Errorf("the pager %q: %w", command, err), "name another one with PAGER, or use --no-pager")
	}
	return printed
}
