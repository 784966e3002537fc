package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// notifyVariable is the address of the service manager, as systemd sets it for Type=notify: the
// path of a datagram socket, or "@" and its abstract name.
const notifyVariable = "NOTIFY_SOCKET"

// notifyPatience is how long a manager that does not read is waited for.
const notifyPatience = 5 * time.Second

// manager is the service manager; "" is none.
type manager string

// takeManager finds the service manager, and hides it from processes that are
// started: none of them speaks for this one.
func takeManager() manager {
	m := manager(os.Getenv(notifyVariable))
	_ = os.Unsetenv(notifyVariable) // it fails for names that no variable can have
	return m
}

// notify sends the manager lines of the form NAME=VALUE.
func (m manager) notify(lines string) error {
	if m == "" {
		return nil
	}
	if strings.HasPrefix(string(m), "/") { // not in the abstract space of names
		if _, err := pathsafe.ResolveDir(filepath.Dir(string(m))); err != nil { // accesses no other user's server
			return err
		}
	}
	conn, err := net.DialTimeout("unixgram", string(m), notifyPatience)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(notifyPatience)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(lines))
	return err
}

// notify sends a message to the manager. An error does not end the view.
func (a *app) notify(m manager, lines string) {
	if err := m.notify(lines); err != nil {
		a.tell("spectrum: could not notify the service manager: %s", oneLine(err.Error()))
	}
}
