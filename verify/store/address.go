package store

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"unicode"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
)

// schemes are what an address can begin with.
var schemes = []string{"file://", "https://", "s3://", "http://"}

// IsAddress reports whether an argument is the address of a store, or of a run in one, and not a path.
func IsAddress(text string) bool {
	for _, scheme := range schemes {
		if strings.HasPrefix(text, scheme) {
			return true
		}
	}
	return false
}

// An AddressError is an address that names no store.
type AddressError struct {
	Text string
	Err  error
}

// Error quotes the address.
func (e *AddressError) Error() string { return fmt.Sprintf("address %q: %v", e.Text, e.Err) }

// Unwrap returns the reason.
func (e *AddressError) Unwrap() error { return e.Err }

// An Address names a store, and a run in it if Root is set.
type Address struct {
	Root  string // the bundle root, 64 lower-case hex digits; "" for the whole store
	Short string // instead of it, what [Store.Find] finds it by

	store    string // the address of the store, in one form
	scheme   string
	host     string // or the bucket
	dir      string // or the path or the prefix, without slashes at its ends
	endpoint string // of s3; "" for the usual one
}

// String is the address, with the run.
func (a Address) String() string {
	if !a.NamesRun() {
		return a.store
	}
	return a.store + "@" + a.Root + a.Short
}

// NamesRun reports whether the address is that of a run.
func (a Address) NamesRun() bool { return a.Root != "" || a.Short != "" }

// latest names the run that was stored last.
const latest = "latest"

// shortest is how many digits of a bundle root are enough if no other run begins with them.
const shortest = 4

// Parse reads an address: STORE or STORE@BUNDLE_ROOT, of which 4 digits can be enough, or STORE@latest.
func Parse(text string) (Address, error) {
	a, err := parse(text)
	if err != nil {
		return Address{}, &AddressError{text, err}
	}
	return a, nil
}

func parse(text string) (Address, error) {
	var a Address
	rest := text
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		switch root := text[at+1:]; {
		case hexdigits.Are(root, 64):
			rest, a.Root = text[:at], root
		case root == latest || len(root) >= shortest && len(root) < 64 && hexdigits.Only(root):
			rest, a.Short = text[:at], root
		}
	}
	u, err := url.Parse(rest)
	if err != nil {
		return a, errors.Unwrap(err)
	}
	switch {
	case u.User != nil && !a.NamesRun() && u.Scheme != "file":
		return a, errors.New("\"@\" must be followed by a bundle root, 4 to 64 lower-case hex digits, or by \"latest\", and names and passwords do not belong into an address")
	case u.User != nil:
		return a, errors.New("names and passwords do not belong into an address")
	case u.Fragment != "" || strings.HasSuffix(rest, "#"):
		return a, errors.New("an address has no \"#\"")
	case strings.Contains(u.Path, "@"):
		return a, errors.New("\"@\" must be followed by a bundle root, 4 to 64 lower-case hex digits, or by \"latest\"")
	}
	a.scheme, a.host, a.dir = u.Scheme, u.Host, strings.Trim(path.Clean("/"+u.Path), "/")
	switch a.scheme {
	case "file":
		err = a.ofFile(u)
	case "https", "http":
		err = a.ofWeb(u)
	case "s3":
		err = a.ofS3(u)
	default:
		err = errors.New("a store is file:///DIR, https://HOST/PATH or s3://BUCKET/PREFIX")
	}
	return a, err
}

func (a *Address) ofFile(u *url.URL) error {
	if u.Host != "" || u.Path == "" {
		return errors.New("a directory is named by its absolute path, as in file:///srv/runs")
	}
	if u.RawQuery != "" || u.ForceQuery {
		return errors.New("a directory takes no parameters")
	}
	a.store = (&url.URL{Scheme: "file", Path: "/" + a.dir}).String()
	return nil
}

func (a *Address) ofWeb(u *url.URL) error {
	if u.Hostname() == "" {
		return errors.New("the host is missing")
	}
	if u.RawQuery != "" || u.ForceQuery {
		return errors.New("a store by https takes no parameters")
	}
	if strings.ContainsFunc(u.Host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return errors.New("write the host in ASCII letters, as in xn--bcher-kva.example")
	}
	a.store = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/" + a.dir}).String()
	return checkSecure(u)
}

func (a *Address) ofS3(u *url.URL) error {
	if u.Host == "" {
		return errors.New("the bucket is missing")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return err
	}
	shown := &url.URL{Scheme: "s3", Host: u.Host, Path: "/" + a.dir}
	for name, values := range query {
		if name != "endpoint" || len(values) != 1 {
			return errors.New("a bucket takes one parameter, endpoint=https://HOST")
		}
		a.endpoint = values[0]
		end, err := url.Parse(a.endpoint)
		if err != nil || end.Hostname() == "" || end.User != nil || end.RawQuery != "" || strings.Trim(end.Path, "/") != "" {
			return fmt.Errorf("endpoint %q is not https://HOST or https://HOST:PORT", a.endpoint)
		}
		if err := checkSecure(end); err != nil {
			return err
		}
		shown.RawQuery = "endpoint=" + url.QueryEscape(a.endpoint)
	}
	a.store = shown.String()
	return nil
}

// checkSecure requires https, except for servers on this host: on the way others could read
// everything, and the keys of requests could be used again.
func checkSecure(u *url.URL) error {
	switch {
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return fmt.Errorf("%q is neither https nor http", u.Scheme)
	case isLoopback(u.Hostname()):
		return nil
	}
	return errors.New("http is for servers on this host only; use https")
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
