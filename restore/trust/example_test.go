package trust_test

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/spectrumfs/spectrum/restore/trust"
)

// Example pins a validator. From then on no other one is trusted, and a revoked one is not
// trusted even if it is pinned.
func Example() {
	place, err := os.MkdirTemp("", "trust")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(place)
	ada, eve := strings.Repeat("ad", 32), strings.Repeat("ee", 32)
	standings := func() {
		policy, err := trust.Load(place)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(policy.Of(ada), policy.Of(eve))
	}
	standings()
	if err := trust.Pin(place, ada, "planning office"); err != nil {
		log.Fatal(err)
	}
	standings()
	if err := trust.Revoke(place, ada, "the key was stolen"); err != nil {
		log.Fatal(err)
	}
	standings()
	// Output:
	// unknown unknown
	// pinned unpinned
	// revoked unpinned
}
