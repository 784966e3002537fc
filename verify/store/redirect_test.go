package store

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/farstore"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestRedirects: a server by http sends its clients to itself only, in any words.
func TestRedirects(t *testing.T) {
	t.Parallel()
	bucket := farstore.NewBucket("runs")
	proxy := farstore.NewProxy(bucket)
	server := httptest.NewServer(proxy)
	defer server.Close()
	reached := 0
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached++
		bucket.ServeHTTP(w, r)
	}))
	defer other.Close()
	s3 := quickWith(t, "s3://runs/team?endpoint="+server.URL, time.Minute)
	b := verified(t, bundletest.New(t).Run("run-1", map[string]string{"a": random(1, 3000)}))
	mustPush(t, s3, b, state(t))
	at := "/runs/team/runs/" + b.Root()
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	s := quickWith(t, server.URL+"/runs/elsewhere", time.Minute)
	for to, why := range map[string]string{
		other.URL + at:                          "redirects to " + strings.TrimPrefix(other.URL, "http://"),
		"http://localhost" + port + at:          "redirects to localhost" + port,
		"https" + server.URL[len("http"):] + at: "redirects to 127.0.0.1",
		"http://192.0.2.1" + at:                 "redirects to 192.0.2.1",
		"http:///" + at:                         `redirects to "http:///`,
		"mailto:x@example.org":                  `redirects to "mailto:`,
		"http://:80" + at:                       `redirects to "http://:80/`,
		"file:///etc/passwd":                    `redirects to "file:///etc/passwd"`,
	} {
		proxy.Break(farstore.On(http.MethodGet, "/elsewhere/", 0, farstore.Redirect(to)))
		_, err := pull(t, s, b.Root())
		if !isFault(err) || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "redirects to :") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if reached > 0 {
		t.Errorf("the other server got %d requests", reached)
	}
	proxy.Break(func(r *http.Request) farstore.Fault {
		if strings.Contains(r.URL.Path, "/elsewhere/") {
			return farstore.Redirect(strings.Replace(r.URL.Path, "/elsewhere/", "/team/", 1))
		}
		return nil
	})
	if _, err := pull(t, s, b.Root()); err != nil {
		t.Errorf("to the same server: %v", err)
	}
}

// TestRedirectRules: from where redirects lead where.
func TestRedirectRules(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		from, to string
		follow   bool
	}{
		{"https://a.example/x", "https://b.example/y", true}, {"https://a.example/x", "http://a.example/x", false}, {"https://a.example", "ftp://a.example", false},
		{"http://127.0.0.1/x", "http://127.0.0.1:80/y", true}, {"http://127.0.0.1/x", "http://127.0.0.1:81/x", false}, {"http://[::1]:9/x", "http://[::1]:9/y", true},
		{"http://127.0.0.1/x", "https://b.example/x", false},
	} {
		from, _ := url.Parse(one.from)
		to, _ := url.Parse(one.to)
		if err := checkRedirect(&http.Request{URL: to}, []*http.Request{{URL: from}}); (err == nil) != one.follow {
			t.Errorf("from %s to %s: %v", one.from, one.to, err)
		}
	}
}

// TestBorder: what a name is resolved to decides, and a redirect leads to this host or a private network
// only from there.
func TestBorder(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		own, to string
		ok      bool
	}{
		{"192.0.2.1", "198.51.100.1", true}, {"192.0.2.1", "127.0.0.1", false}, {"192.0.2.1", "::1", false}, {"192.0.2.1", "::ffff:127.0.0.1", false},
		{"192.0.2.1", "10.0.0.1", false}, {"192.0.2.1", "169.254.169.254", false}, {"192.0.2.1", "fd00::1", false}, {"192.0.2.1", "fe80::1", false},
		{"192.0.2.1", "0.0.0.0", false}, {"192.0.2.1", "100.64.0.1", false}, {"10.0.0.1", "192.168.0.1", true}, {"10.0.0.1", "127.0.0.1", false},
		{"127.0.0.1", "::1", true}, {"127.0.0.1", "10.0.0.1", false}, {"127.0.0.1", "2001:db8::1", true},
	} {
		b := &border{own: "store:443", proxies: map[string]bool{"proxy:80": true}}
		if err := b.check("store:443", netip.MustParseAddr(one.own)); err != nil {
			t.Error(err)
		}
		if err := b.check("other:443", netip.MustParseAddr(one.to)); (err == nil) != one.ok {
			t.Errorf("from %s to %s: %v", one.own, one.to, err)
		}
		if err := b.check("proxy:80", netip.MustParseAddr(one.to)); err != nil {
			t.Errorf("a proxy: %v", err)
		}
		// A store whose name was once public stays public.
		for _, at := range []string{"192.0.2.1", "127.0.0.1"} {
			_ = b.check("store:443", netip.MustParseAddr(at))
		}
		if err := b.check("other:443", netip.MustParseAddr("127.0.0.1")); err == nil {
			t.Error("a second address of the store opens this host")
		}
	}
}

// TestBorderIsAtTheConnection: a name of this host is not connected to, and the error stays one that is
// not repeated.
func TestBorderIsAtTheConnection(t *testing.T) {
	t.Parallel()
	here, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	_, port, _ := net.SplitHostPort(here.Addr().String())
	a, err := Parse("https://store.example/x")
	if err != nil {
		t.Fatal(err)
	}
	transport := openSite(a, time.Minute).client.Transport.(counting)
	_, err = transport.DialContext(context.Background(), "tcp", net.JoinHostPort("localhost", port))
	if err == nil || isPassing(ofTransport(err)) || !strings.Contains(err.Error(), "localhost") {
		t.Errorf("%v", err)
	}
}
