package store

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/farstore"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestSlowServer: a server that sends for ever, and slowly, does not hold a command. The bodies of whole
// objects, of parts, lists and errors are measured alike.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	bucket := farstore.NewBucket("runs")
	proxy := farstore.NewProxy(bucket)
	server := httptest.NewServer(proxy)
	defer server.Close()
	defer server.CloseClientConnections()
	s3 := quickWith(t, "s3://runs/team?endpoint="+server.URL, time.Minute)
	b := verified(t, bundletest.New(t).Run("run-1", map[string]string{"a": random(1, 3000)}))
	mustPush(t, s3, b, state(t))
	for _, address := range []string{s3.Address(), server.URL + "/runs/team"} {
		s := quickWith(t, address, shortly)
		for _, code := range []int{http.StatusOK, http.StatusForbidden, http.StatusServiceUnavailable} {
			for _, part := range []string{"/team/runs/", "/packs/", ""} {
				if address != s3.Address() && part == "" {
					continue // no lists
				}
				proxy.Break(farstore.On(http.MethodGet, part, 0, farstore.Trickle(code)))
				began := time.Now()
				var err error
				if part == "" {
					_, err = s.Runs(t.Context())
				} else {
					_, err = pull(t, s, b.Root())
				}
				if took := time.Since(began); !isFault(err) || took > deadline {
					t.Errorf("%s, %d, %q: %v, %v", address, code, part, took, err)
				}
			}
		}
	}
}
