package farstore

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// A Fault answers a request in the place of a server, and may ask it.
type Fault func(w http.ResponseWriter, r *http.Request, server http.Handler)

// Proxy passes requests on, except for those that a test has a fault for.
type Proxy struct {
	server http.Handler

	mu    sync.Mutex
	fault func(r *http.Request) Fault
	seen  []string
}

// NewProxy returns a proxy of a server in this process.
func NewProxy(server http.Handler) *Proxy { return &Proxy{server: server} }

// NewProxyTo returns a proxy of the server at an address.
func NewProxyTo(address string) (*Proxy, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	return NewProxy(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(u)
		r.Out.Host = r.In.Host // it is signed
	}}), nil
}

// Break sets which requests have a fault from now on; nil for none.
func (p *Proxy) Break(fault func(r *http.Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

// Seen returns the requests since the last call, as "GET /path".
func (p *Proxy) Seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = nil
	return seen
}

// ServeHTTP passes a request on.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.seen = append(p.seen, r.Method+" "+r.URL.Path)
	var fault Fault
	if p.fault != nil {
		fault = p.fault(r)
	}
	p.mu.Unlock()
	if fault != nil {
		fault(w, r, p.server)
		return
	}
	p.server.ServeHTTP(w, r)
}

// On is a fault of every request of a method whose path has a part, from the first one on until it
// happened times times; times 0 is for ever.
func On(method, part string, times int, fault Fault) func(r *http.Request) Fault {
	happened := 0
	return func(r *http.Request) Fault {
		if r.Method != method || !strings.Contains(r.URL.Path, part) || times > 0 && happened == times {
			return nil
		}
		happened++
		return fault
	}
}

// Status answers with a status.
func Status(code int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { fail(w, code, "SlowDown") }
}

// LostAnswer has the server do the request, and answers that it is not available.
func LostAnswer(w http.ResponseWriter, r *http.Request, server http.Handler) {
	server.ServeHTTP(httptest.NewRecorder(), r)
	fail(w, http.StatusServiceUnavailable, "ServiceUnavailable")
}

// WholeObject ignores that a part was requested.
func WholeObject(w http.ResponseWriter, r *http.Request, server http.Handler) {
	r.Header.Del("Range")
	server.ServeHTTP(w, r)
}

// Redirect sends the client elsewhere.
func Redirect(to string) Fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}
}

// Silence never answers. Only when the body is read a server notices that the client is gone.
func Silence(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// Broken closes the connection.
func Broken(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// Changed answers with other bytes than the server has. The status and the header stay, but for the
// length.
func Changed(change func(header http.Header, content []byte) []byte) Fault {
	return func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, r)
		content := change(answer.Header(), bytes.Clone(answer.Body.Bytes()))
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(content)
	}
}

// Cut ends the answer in the middle.
func Cut(w http.ResponseWriter, r *http.Request, server http.Handler) {
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, r)
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = io.CopyN(w, answer.Body, int64(answer.Body.Len()/2))
	panic(http.ErrAbortHandler)
}

// Stalled sends half of the answer and then nothing.
func Stalled(w http.ResponseWriter, r *http.Request, server http.Handler) {
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, r)
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = io.CopyN(w, answer.Body, int64(answer.Body.Len()/2))
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// Trickle answers with a status and then, for ever, a few bytes at a time.
func Trickle(code int) Fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.WriteHeader(code)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "    ")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Millisecond)
		}
	}
}
