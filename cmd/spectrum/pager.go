package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// colors are the values of --color.
var colors = []string{"auto", "always", "never"}

// paged are the flags of a command whose result may be long.
type paged struct {
	color   string
	noPager bool
	asText  bool // what cannot be seen is shown, into a pipe too
}

func (p *paged) addFlags(cmd *cobra.Command) {
	p.colorFlag(cmd)
	noPagerFlag(cmd, &p.noPager)
}

func (p *paged) colorFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.color, "color", "auto", "`when` to use colours: auto (on a terminal), always or never")
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colors, cobra.ShellCompDirectiveNoFileComp))
}

func noPagerFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "no-pager", false, "do not use a pager on a terminal (SPECTRUM_PAGER, PAGER)")
}

func (p *paged) check(cmd *cobra.Command) error {
	if !slices.Contains(colors, p.color) {
		return usage(cmd, "--color %q is not auto, always or never", p.color)
	}
	return nil
}

// colored reports whether colors are written: on a terminal unless the environment forbids it, or
// by the flag.
func (p *paged) colored(terminal bool) bool {
	forbidden := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	return p.color == "always" || p.color != "never" && terminal && !forbidden
}

// show runs print with stdout, or on a terminal with a pager in between, and waits for that.
func (p *paged) show(a *app, print func(w *diffWriter) error) error {
	terminal := onTerminal(a.stdout)
	w := &diffWriter{color: p.colored(terminal), width: 80}
	w.exact = !terminal && !w.color && !p.asText
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

// pagerCommand returns the pager of the environment, or less if it is installed; "" is none.
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

// The exit statuses of a shell that could not start a command, and the first status of a command
// that was ended by a signal. Other statuses of a pager are ignored.
const (
	notRunnable = 126
	notFound    = 127
	signalled   = 128
)

// throughPager passes the output of print to a pager. It is not an error if the user quits the
// pager. If the pager has read nothing, print writes to the terminal.
func throughPager(command string, a *app, print func(io.Writer) error) error {
	err := runPager(command, lessOptions(), a, print)
	if errors.Is(err, errUnread) {
		a.tell("spectrum: the pager %q has read nothing, so the output is shown without it", command)
		return print(a.stdout)
	}
	return err
}

// lessOptions are the options for less: those of the user, and R before them, without which colours
// are shown as escapes.
func lessOptions() string {
	if less, ok := os.LookupEnv("LESS"); ok {
		return strings.TrimRight("-R "+less, " ")
	}
	return "FRX"
}

// errUnread: a pager has ended and has read nothing.
var errUnread = errors.New("the pager has read nothing")

// lessVariables are the variables of the environment that less reads, with these options. What is shown
// is UTF-8, whatever the locale.
func lessVariables(less string) []string {
	variables := []string{"LESS=" + less}
	if os.Getenv("LESSCHARSET") == "" {
		variables = append(variables, "LESSCHARSET=utf-8")
	}
	return variables
}

// runPager runs a pager with options for less.
func runPager(command, less string, a *app, print func(io.Writer) error) error {
	pager := exec.Command("/bin/sh", "-c", command) //nolint:noctx // Ctrl-C is for the pager too, which decides when it ends
	pager.Stdout, pager.Stderr = a.stdout, a.stderr
	pager.Env = append(os.Environ(), lessVariables(less)...)
	input, err := newPagerInput()
	if err == nil {
		pager.Stdin = input.from
		if err = pager.Start(); err != nil {
			input.end()
			input.leave()
		}
	}
	if err != nil {
		return fmt.Errorf("the pager %q: %w", command, err)
	}
	ended := make(chan error, 1)
	go func() {
		err := pager.Wait()
		input.leave()
		ended <- err
	}()
	printed := print(input)
	if errors.Is(printed, syscall.EPIPE) {
		printed = nil
	}
	input.end()
	err = <-ended
	status, killed := pager.ProcessState.ExitCode(), killedBy(pager.ProcessState)
	switch {
	case printed != nil:
		return printed
	case status == notRunnable || status == notFound:
		return refusedHint(fmt.Errorf("the pager %q: %w", command, err), "name another one with PAGER, or use --no-pager")
	case input.isUnread():
		return errUnread
	case killed != 0:
		a.tell("spectrum: the pager %q was killed (signal: %v), so some of the output may be missing; --no-pager shows it without a pager", command, killed)
	}
	return nil
}

// killedBy is the signal that has ended a pager, or what its shell has run; 0 for none, and for
// those by which a person ends one.
func killedBy(state *os.ProcessState) syscall.Signal {
	signal := syscall.Signal(0)
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		signal = status.Signal()
	} else if state.ExitCode() > signalled {
		signal = syscall.Signal(state.ExitCode() - signalled)
	}
	if slices.Contains([]syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGHUP, syscall.SIGTERM}, signal) {
		return 0
	}
	return signal
}

// pagerInput is the input of a pager. Both ends are open here, so that unread input can be measured
// when both sides are done.
type pagerInput struct {
	from, to *os.File
	written  int

	mu          sync.Mutex
	over, alone bool // all is written; the pager has ended before that
	left        int  // was never read
}

func newPagerInput() (*pagerInput, error) {
	from, to, err := os.Pipe()
	return &pagerInput{from: from, to: to}, err
}

func (p *pagerInput) Write(some []byte) (int, error) {
	n, err := p.to.Write(some)
	p.written += n
	return n, err
}

// end is called when everything is written, and leave when the pager has ended: later writers get
// an error. The second of the two calls counts the unread bytes.
func (p *pagerInput) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over = true; p.alone {
		p.left = leftIn(p.to)
	}
	_ = p.to.Close()
}

func (p *pagerInput) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alone = !p.over; p.over {
		p.left = leftIn(p.from)
	}
	_ = p.from.Close()
}

// leftIn is how many bytes are in a pipe; -1 where that is not known.
func leftIn(pipe *os.File) int {
	left, err := unix.IoctlGetInt(int(pipe.Fd()), unix.TIOCINQ)
	if err != nil {
		return -1
	}
	return left
}

// isUnread reports, when both sides are done, whether the pager has read nothing.
func (p *pagerInput) isUnread() bool { return p.left == p.written }
