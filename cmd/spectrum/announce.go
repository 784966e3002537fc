package main

import (
	"fmt"
	"os"

	"github.com/spectrumfs/spectrum/fusefs/fusemount"
)

// listeners are the processes that wait until the view is ready: a service manager, or the process
// that put this one into the background.
type listeners struct {
	manager manager
	parent  *os.File // nil in the foreground
	log     *os.File // where the background logs to
}

// openLog opens the log of a view in the background, before there is anything
// that would have to be undone.
func (l *listeners) openLog(a *app) error {
	if l.parent == nil {
		return nil
	}
	state, err := a.openState()
	if err != nil {
		return err
	}
	defer state.Close()
	l.log, err = state.ViewLog()
	return refusedHint(err, stateHint)
}

func (l *listeners) close() {
	for _, f := range []*os.File{l.parent, l.log} {
		if f != nil {
			_ = f.Close() // the log is written through stderr, and not through this one
		}
	}
}

// release lets the waiting process continue.
func (l *listeners) release() error {
	if l.parent == nil {
		return nil
	}
	defer l.close()
	if err := leave(l.log); err != nil {
		return err
	}
	_, err := l.parent.Write([]byte{1})
	return err
}

// announce reports that the view is ready, first on the terminal or to scripts: nothing else is
// printed once the process is in the background.
func (a *app) announce(source viewSource, view *fusemount.View, to listeners) error {
	how := "Ctrl-C"
	if to.parent != nil {
		how = "\"spectrum umount\""
	}
	text, fields := source.describe()
	where := fmt.Sprintf("%s, at %q", text, view.Path())
	signed := ""
	if v, ok := source.(*candidateView); ok {
		signed = ", signed by " + a.signers(v.scene().Bundles())
	}
	a.say("mounted %s%s; %s ends it", where, signed, how)
	fields["mountpoint"], fields["ok"] = jsonText(view.Path()), true
	if err := a.result("", fields); err != nil {
		return err
	}
	a.notify(to.manager, "READY=1\nSTATUS="+oneLine(where))
	return to.release()
}
