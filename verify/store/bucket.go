package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// bucket is a store in a bucket of a server that speaks the protocol of S3.
type bucket struct {
	core   *minio.Core
	name   string
	prefix string
}

// openBucket finds keys as the tools of AWS do, in the environment, then in the file of profiles; without
// any the requests are anonymous. It sends no request.
func openBucket(a Address, patience time.Duration) (*bucket, error) {
	endpoint := cmp.Or(a.endpoint, "https://s3.amazonaws.com")
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	core, err := minio.NewCore(u.Host, &minio.Options{
		Creds:  credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}),
		Secure: u.Scheme == "https",
		Region: cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
		// Repeated here, and not by the library, whose waits are longer than a deadline.
		MaxRetries: 1,
		Transport:  counting{newTransport(patience)},
	})
	if err != nil {
		return nil, err
	}
	core.SetAppInfo("spectrum", "1")
	return &bucket{core, a.host, a.dir}, nil
}

func (b *bucket) key(key string) string { return strings.TrimPrefix(path.Join(b.prefix, key), "/") }

// ofBucket is the error of a request.
func ofBucket(err error) error {
	if err == nil {
		return nil
	}
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) || answer.StatusCode == 0 {
		return ofTransport(err)
	}
	switch of := ofStatus(answer.StatusCode, http.StatusText(answer.StatusCode)); {
	case answer.Code == minio.NoSuchBucket:
		return errors.New("there is no such bucket")
	case errors.Is(of, fs.ErrNotExist) || errors.Is(of, fs.ErrExist) || of == nil:
		return of
	case isPassing(of):
		return Passing(err)
	}
	return err
}

func (b *bucket) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	var opts minio.GetObjectOptions
	if value := rangeOf(off, n); value != "" {
		opts.Set("Range", value)
	}
	body, _, header, err := b.core.GetObject(ctx, b.name, b.key(key), opts)
	if err != nil {
		return nil, ofBucket(err)
	}
	if err := checkRange(header, off, n); err != nil {
		_ = body.Close()
		return nil, err
	}
	return body, nil
}

func (b *bucket) PutIfAbsent(ctx context.Context, key string, content []byte) error {
	var opts minio.PutObjectOptions
	opts.SetMatchETagExcept("*")
	err := b.write(ctx, key, content, opts)
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) || answer.StatusCode != http.StatusNotImplemented {
		return err
	}
	// A server that cannot do it in one step.
	if _, err := b.Stat(ctx, key); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, fs.ErrExist)
	}
	return b.Put(ctx, key, content)
}

func (b *bucket) Put(ctx context.Context, key string, content []byte) error {
	return b.write(ctx, key, content, minio.PutObjectOptions{})
}

// write puts an object. The SHA-256 of the content is signed with the request.
func (b *bucket) write(ctx context.Context, key string, content []byte, opts minio.PutObjectOptions) error {
	digest := sha256.Sum256(content)
	opts.ContentType, opts.DisableContentSha256 = "application/octet-stream", true // no chunks: some servers keep their mark
	_, err := b.core.PutObject(ctx, b.name, b.key(key), bytes.NewReader(content), int64(len(content)), "", hex.EncodeToString(digest[:]), opts)
	return ofBucket(err)
}

func (b *bucket) Stat(ctx context.Context, key string) (Object, error) {
	info, err := b.core.StatObject(ctx, b.name, b.key(key), minio.StatObjectOptions{})
	return Object{key, info.Size, info.LastModified}, ofBucket(err)
}

func (b *bucket) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		below := b.key(prefix) + "/"
		for info := range b.core.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: below, Recursive: true}) {
			if info.Err != nil {
				yield(Object{}, ofBucket(info.Err))
				return
			}
			if !strings.HasPrefix(info.Key, below) {
				continue // not what was requested
			}
			if !yield(Object{prefix + info.Key[len(below):], info.Size, info.LastModified}, nil) {
				return
			}
		}
	}
}

func (b *bucket) Delete(ctx context.Context, key string) error {
	err := ofBucket(b.core.RemoveObject(ctx, b.name, b.key(key), minio.RemoveObjectOptions{}))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
