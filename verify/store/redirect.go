package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
)

// This file bounds where a web server can send its clients: a store must not choose what is requested
// in the network of its reader.

// checkRedirect follows a few redirects: by http to the same server, by https to any server by https. A
// [border] checks the addresses of those.
func checkRedirect(to *http.Request, via []*http.Request) error {
	from, shown := via[0].URL, to.URL.Host
	if to.URL.Hostname() == "" {
		shown = fmt.Sprintf("%.100q", to.URL.Redacted())
	}
	var why string
	switch {
	case len(via) > 5:
		return lasting{errors.New("the server redirects more than five times")}
	case to.URL.Hostname() == "":
		why = "it has no host"
	case from.Scheme == "http" && (to.URL.Scheme != "http" || address(to.URL) != address(from)):
		why = "by http only redirects to the same server are followed"
	case from.Scheme == "https" && to.URL.Scheme != "https":
		why = "it is not https"
	default:
		return nil
	}
	return lasting{fmt.Errorf("the server redirects to %s: %s", shown, why)}
}

// address is the address of the server of a URL as it is dialed.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// A zone is a part of the network.
type zone int

const (
	public  zone = iota
	private      // of an organisation, or of one link
	local        // this host
)

func zoneOf(addr netip.Addr) zone {
	addr = addr.Unmap()
	switch {
	case addr.IsLoopback() || addr.IsUnspecified():
		return local
	case addr.IsGlobalUnicast() && !addr.IsPrivate() && !shared.Contains(addr):
		return public
	}
	return private
}

// shared are the addresses between a carrier and its customers.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// A border keeps redirects out of private networks and this host, except for the zone that the store
// itself is in. It looks at the addresses that names have at the time of the connection.
type border struct {
	dialer net.Dialer
	own    string // the address of the store

	mu      sync.Mutex
	zone    zone            // of the store, of the most public address that it had
	known   bool            // that there was a connection to the store
	proxies map[string]bool // addresses that this user has chosen
}

// dial connects to the store, to a proxy, or to where the store redirects.
func (b *border) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := b.dialer
	dialer.ControlContext = func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		return b.check(addr, at.Addr())
	}
	return dialer.DialContext(ctx, network, addr)
}

// check judges the address of a server before it is connected to.
func (b *border) check(server string, at netip.Addr) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	in := zoneOf(at)
	switch {
	case b.proxies[server]:
	case server == b.own:
		if !b.known || in < b.zone {
			b.zone, b.known = in, true
		}
	case in != public && in != b.zone:
		return lasting{fmt.Errorf("the server redirects to %s, which is %s: an address of this host or of a private network", server, at)}
	}
	return nil
}

// proxy is the proxy of a request, as the environment has it.
func (b *border) proxy(req *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(req)
	if u != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.proxies[address(u)] = true
	}
	return u, err
}
