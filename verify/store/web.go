package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

// site is a store on a web server, which serves its objects as files.
type site struct {
	base   *url.URL
	client *http.Client
}

func openSite(a Address, patience time.Duration) *site {
	base := &url.URL{Scheme: a.scheme, Host: a.host, Path: "/" + a.dir}
	transport := newTransport(patience)
	border := &border{dialer: newDialer(patience), own: address(base), proxies: map[string]bool{}}
	transport.DialContext, transport.Proxy = border.dial, border.proxy
	return &site{base, &http.Client{Transport: counting{transport}, CheckRedirect: checkRedirect}}
}

// newTransport returns a transport that gives up on a silent server. Answers are not decompressed: their
// bytes are those of the object.
func newTransport(patience time.Duration) *http.Transport {
	dialer := newDialer(patience)
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    patience,
		ResponseHeaderTimeout:  patience,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        time.Minute,
		MaxIdleConnsPerHost:    workers,
		MaxResponseHeaderBytes: 256 << 10,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

func newDialer(patience time.Duration) net.Dialer {
	return net.Dialer{Timeout: patience, KeepAlive: 15 * time.Second}
}

func (s *site) request(ctx context.Context, method, key string, off, n int64) (*http.Response, error) {
	at := *s.base
	at.Path = path.Join(at.Path, key)
	req, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, err
	}
	if value := rangeOf(off, n); value != "" {
		req.Header.Set("Range", value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, ofTransport(err)
	}
	if err := ofStatus(resp.StatusCode, resp.Status); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// rangeOf is the header of a request for a part of an object; "" for the whole.
func rangeOf(off, n int64) string {
	switch {
	case n >= 0:
		return fmt.Sprintf("bytes=%d-%d", off, off+n-1)
	case off > 0:
		return fmt.Sprintf("bytes=%d-", off)
	}
	return ""
}

// checkRange requires that an answer is the part of the object that was requested.
func checkRange(header http.Header, off, n int64) error {
	if encoding := header.Get("Content-Encoding"); encoding != "" && encoding != "identity" && encoding != "aws-chunked" { // a mark of how it was put
		return fmt.Errorf("the server changes the bytes: Content-Encoding %q", encoding)
	}
	if rangeOf(off, n) == "" {
		return nil
	}
	given := header.Get("Content-Range")
	if given == "" {
		return Passing(errors.New("the server answers with the whole object instead of the requested part"))
	}
	part, _, _ := strings.Cut(strings.TrimPrefix(given, "bytes "), "/")
	first, last, _ := strings.Cut(part, "-")
	from, err := strconv.ParseInt(first, 10, 64)
	to, err2 := strconv.ParseInt(last, 10, 64)
	if err != nil || err2 != nil || from != off || n >= 0 && to != off+n-1 {
		return Passing(fmt.Errorf("the server answers with another part: Content-Range %q", given))
	}
	return nil
}

// ofStatus is the error of a status of HTTP.
func ofStatus(code int, text string) error {
	switch {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusNotFound || code == http.StatusGone:
		return fs.ErrNotExist
	case code == http.StatusPreconditionFailed:
		return fs.ErrExist
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code == http.StatusConflict || code >= 500 && code != http.StatusNotImplemented:
		return Passing(fmt.Errorf("the server answers %q", text))
	case code == http.StatusRequestedRangeNotSatisfiable:
		return errors.New("the object is shorter than expected")
	}
	return fmt.Errorf("the server answers %q", text)
}

// A lasting error stays when the request is repeated.
type lasting struct{ error }

// ofTransport is an error of a request without an answer. A name that cannot be resolved, a rejected
// connection and a broken one may pass; a wrong certificate or redirect does not.
func ofTransport(err error) error {
	if of, is := errors.AsType[*url.Error](err); is {
		err = of.Err
	}
	_, isLasting := errors.AsType[lasting](err)
	_, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case isLasting || isCertificate:
		return err
	case errors.Is(err, io.EOF): // which would be the end of an object
		err = errors.New("the server has closed the connection")
	}
	return Passing(err)
}

func (s *site) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	resp, err := s.request(ctx, http.MethodGet, key, off, n)
	if err != nil {
		return nil, err
	}
	if err := checkRange(resp.Header, off, n); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp.Body, nil
}

func (s *site) Stat(ctx context.Context, key string) (Object, error) {
	resp, err := s.request(ctx, http.MethodHead, key, 0, -1)
	if err != nil {
		return Object{}, err
	}
	_ = resp.Body.Close()
	modified, _ := http.ParseTime(resp.Header.Get("Last-Modified"))
	return Object{key, resp.ContentLength, modified}, nil
}

func (*site) PutIfAbsent(context.Context, string, []byte) error { return ErrReadOnly }
func (*site) Put(context.Context, string, []byte) error         { return ErrReadOnly }
func (*site) Delete(context.Context, string) error              { return ErrReadOnly }

func (*site) List(context.Context, string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) { yield(Object{}, ErrUnlisted) }
}
