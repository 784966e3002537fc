// Package farstore has servers for tests of stores: a bucket in memory, and a proxy that has faults.
package farstore

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bucket serves one bucket, as /NAME/KEY, by the requests of S3 that a store needs. It checks no
// signature. A GET without one is that of a static web server.
type Bucket struct {
	Name string

	mu      sync.Mutex
	objects map[string]object
	skew    time.Duration
}

type object struct {
	content []byte
	time    time.Time
}

// NewBucket makes an empty bucket.
func NewBucket(name string) *Bucket { return &Bucket{Name: name, objects: map[string]object{}} }

// Pass has the clock of the server go on.
func (b *Bucket) Pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.skew += d
}

// Keys lists the objects in byte order.
func (b *Bucket) Keys() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.keys("")
}

func (b *Bucket) keys(prefix string) []string {
	var keys []string
	for key := range b.objects {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Content returns the bytes of an object, nil for none.
func (b *Bucket) Content(key string) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.objects[key].content)
}

// Set makes or replaces an object; nil removes it.
func (b *Bucket) Set(key string, content []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if content == nil {
		delete(b.objects, key)
		return
	}
	b.objects[key] = object{bytes.Clone(content), b.now()}
}

func (b *Bucket) now() time.Time { return time.Now().Add(b.skew) }

// ServeHTTP answers one request.
func (b *Bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, ok := strings.CutPrefix(r.URL.Path, "/"+b.Name)
	key = strings.TrimPrefix(key, "/")
	switch {
	case !ok:
		fail(w, http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodPut:
		b.put(w, r, key)
	case r.Method == http.MethodDelete:
		b.Set(key, nil)
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Query().Has("list-type"):
		b.list(w, r)
	case r.URL.Query().Has("location"):
		_, _ = io.WriteString(w, `<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></LocationConstraint>`)
	default:
		b.get(w, r, key)
	}
}

func (b *Bucket) get(w http.ResponseWriter, r *http.Request, key string) {
	b.mu.Lock()
	o, ok := b.objects[key]
	b.mu.Unlock()
	if !ok {
		fail(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("ETag", `"0"`)
	http.ServeContent(w, r, "", o.time, bytes.NewReader(o.content))
}

func (b *Bucket) put(w http.ResponseWriter, r *http.Request, key string) {
	content, err := body(r)
	if err != nil {
		fail(w, http.StatusBadRequest, "IncompleteBody")
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, exists := b.objects[key]; exists && r.Header.Get("If-None-Match") == "*" {
		fail(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	b.objects[key] = object{content, b.now()}
	w.Header().Set("ETag", `"0"`)
}

// body reads what is put; a client may send it in signed chunks.
func body(r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return io.ReadAll(r.Body)
	}
	var content []byte
	chunks := bufio.NewReader(r.Body)
	for {
		line, err := chunks.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseInt(size, 16, 64)
		if err != nil || n == 0 {
			return content, err
		}
		chunk := make([]byte, n+2)
		if _, err := io.ReadFull(chunks, chunk); err != nil {
			return nil, err
		}
		content = append(content, chunk[:n]...)
	}
}

// page is how many objects a listing has at once: few, so that tests need several.
const page = 3

func (b *Bucket) list(w http.ResponseWriter, r *http.Request) {
	type entry struct {
		Key          string
		LastModified string
		ETag         string
		Size         int
	}
	var answer struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []entry
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	after := r.URL.Query().Get("continuation-token")
	for _, key := range b.keys(r.URL.Query().Get("prefix")) {
		if key <= after {
			continue
		}
		if len(answer.Contents) == page {
			answer.IsTruncated, answer.NextContinuationToken = true, answer.Contents[page-1].Key
			break
		}
		o := b.objects[key]
		answer.Contents = append(answer.Contents, entry{key, o.time.UTC().Format("2006-01-02T15:04:05.000Z"), `"0"`, len(o.content)})
	}
	_ = xml.NewEncoder(w).Encode(answer)
}

func fail(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}
