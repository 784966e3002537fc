package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
)

const committed = "../../../testdata/conformance"

// all are the cases, made once.
var all = sync.OnceValue(cases)

// TestCommitted: the files are exactly what this program writes.
func TestCommitted(t *testing.T) {
	want := map[string][]byte{}
	for _, c := range all() {
		if want[c.Name] != nil {
			t.Errorf("two cases are named %q", c.Name)
		}
		want[c.Name] = suite.Format(c)
	}
	files, err := filepath.Glob(filepath.Join(committed, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(raw, want[name]) {
			t.Errorf("%q is not what the author writes: go run ./test/conformance/author", file)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%q is missing: go run ./test/conformance/author", name)
	}
}

// TestWhatIsReadIsWhatWasWritten: the format loses nothing.
func TestWhatIsReadIsWhatWasWritten(t *testing.T) {
	total := 0
	for _, c := range all() {
		raw := suite.Format(c)
		total += len(raw)
		again, err := suite.Parse(c.Name, raw)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if !slices.Equal(again.Entries, c.Entries) || again.Ordinary != c.Ordinary || len(again.Commands) != len(c.Commands) {
			t.Errorf("%s: read as\n%+v\nwritten as\n%+v", c.Name, again.Entries, c.Entries)
		}
		if second := suite.Format(again); !bytes.Equal(raw, second) {
			t.Errorf("%s: written again it is another", c.Name)
		}
	}
	if total > 7<<19 {
		t.Errorf("the suite has %d bytes: choose fewer pairs", total)
	}
}

// lawCodes are all codes of each law, as its document lists them.
var lawCodes = map[law]string{
	resume: `STATUS_NOT_SUCCESS CMP01_NOT_PASS VALIDATOR_UNSUPPORTED VALIDATOR_BUILD_ID_MISSING VALIDATOR_BUILD_MISMATCH
		OUTPUT_MISSING HASH_MISMATCH BUNDLE_INCOMPLETE`,
	memory: `STATUS_NOT_SUCCESS CMP01_NOT_PASS VALIDATOR_UNSUPPORTED VALIDATOR_BUILD_ID_MISSING OUTPUT_MISSING HASH_MISMATCH
		BUNDLE_INCOMPLETE INVALID_CHAIN_REFERENCE CHAIN_ORDER_VIOLATION FORBIDDEN_ARTIFACT`,
	strict: `ALGORITHM_UNSUPPORTED ARTIFACT_EXTRA ARTIFACT_MALFORMED ARTIFACT_MISSING BUNDLE_ROOT_MISMATCH CHAIN_DUPLICATE_RUN
		CHAIN_EMPTY CHAIN_ROOT_MISMATCH DECISION_INVALID FIELD_EXTRA FIELD_MISSING FORBIDDEN_ARTIFACT HASH_MISMATCH
		IDENTITY_INVALID IDENTITY_MISMATCH IDENTITY_MULTIPLE KEY_INVALID OUTPUT_MISSING PAYLOAD_MISMATCH RESTORATION_FAILED
		SERIALIZATION_INVALID SIGNATURE_INCOMPLETE SIGNATURE_INVALID SIGNATURE_MALFORMED SIGNATURE_MULTIPLE`,
	restore: `RESTORE_VERIFY_STRICT_FAILED RESTORE_PROOF_MISSING RESTORE_PROOF_MALFORMED RESTORE_PROOF_RESTORATION_RESULT_MISSING
		RESTORE_PROOF_NOT_VERIFIED RESTORE_OUTPUT_HASHES_MISSING RESTORE_OUTPUT_HASHES_MALFORMED RESTORE_OUTPUT_HASHES_HASHES_MISSING
		RESTORE_OUTPUT_HASHES_HASHES_EMPTY RESTORE_TARGET_MISSING RESTORE_TARGET_NOT_ABSOLUTE RESTORE_TARGET_NOT_EXIST
		RESTORE_TARGET_NOT_DIRECTORY RESTORE_TARGET_NOT_WRITABLE RESTORE_PATH_TRAVERSAL_DETECTED RESTORE_PATH_NULL_BYTE_DETECTED
		RESTORE_SYMLINK_ESCAPE_DETECTED RESTORE_SOURCE_MISSING RESTORE_SOURCE_NOT_REGULAR_FILE RESTORE_TARGET_PATH_EXISTS
		RESTORE_CHAIN_RUN_ID_DUPLICATE RESTORE_CHAIN_TARGET_DIR_EXISTS RESTORE_STAGING_HASH_MISMATCH RESTORE_FINALIZE_FAILED
		RESTORE_OUTPUT_MISSING_AFTER_RESTORE RESTORE_HASH_MISMATCH_AFTER_RESTORE RESTORE_RESULT_ARTIFACT_WRITE_FAILED
		RESTORE_ROLLBACK_FAILED RESTORE_INTERNAL_ERROR`,
}

// notByInput are the codes that no tree can cause, and why.
var notByInput = map[law]map[string]string{
	strict: {
		"IDENTITY_MULTIPLE":   "a second identity is ARTIFACT_EXTRA in phase 1 (D9)",
		"SIGNATURE_MULTIPLE":  "a second signature is ARTIFACT_EXTRA in phase 1 (D9)",
		"PAYLOAD_MISMATCH":    "phase 5 has a code of its own for each field of the payload",
		"CHAIN_ROOT_MISMATCH": "no artifact states a chain root that could differ from the computed one",
	},
	restore: {
		"RESTORE_SOURCE_MISSING":               "a source that is missing is OUTPUT_MISSING in the gate (D4); it takes one that goes away between gate and plan",
		"RESTORE_STAGING_HASH_MISMATCH":        "it takes a source that changes between gate and copy, or a disk that lies",
		"RESTORE_FINALIZE_FAILED":              "it takes a rival or an error during the move",
		"RESTORE_OUTPUT_MISSING_AFTER_RESTORE": "it takes another process that removes a target before VERIFY",
		"RESTORE_HASH_MISMATCH_AFTER_RESTORE":  "it takes another process that changes a target before VERIFY",
		"RESTORE_ROLLBACK_FAILED":              "it takes an error or a rival during a rollback",
		"RESTORE_INTERNAL_ERROR":               "it takes a fault of the machine",
	},
}

// TestEveryCodeIsCaused: every code of every law is a verdict of some case, or
// there is a reason why not.
func TestEveryCodeIsCaused(t *testing.T) {
	caused := map[law]map[string]int{resume: {}, memory: {}, strict: {}, restore: {}}
	for _, c := range all() {
		for _, cmd := range c.Commands {
			var result struct {
				Code string `json:"code"`
			}
			if err := json.Unmarshal([]byte(cmd.Result), &result); err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			caused[lawOf(cmd)][result.Code]++
		}
	}
	for l, list := range lawCodes {
		codes := strings.Fields(list)
		for _, code := range codes {
			_, excused := notByInput[l][code]
			if n := caused[l][code]; (n == 0) != excused {
				t.Errorf("SPECTRUM-%s: %s is the verdict of %d commands; excused: %v", l, code, n, excused)
			}
		}
		for code := range caused[l] {
			if !slices.Contains(append(codes, "OK", ""), code) {
				t.Errorf("SPECTRUM-%s has no code %s", l, code)
			}
		}
		for code := range notByInput[l] {
			if !slices.Contains(codes, code) {
				t.Errorf("SPECTRUM-%s has no code %s to excuse", l, code)
			}
		}
	}
}

func lawOf(cmd suite.Command) law {
	switch {
	case cmd.Args[0] == "restore":
		return restore
	case slices.Contains(cmd.Args, "memory"):
		return memory
	case slices.Contains(cmd.Args, "resume"):
		return resume
	}
	return strict
}

// TestPairsShowTheirOrder: every pair says which two faults it holds, which of
// them decides, and why.
func TestPairsShowTheirOrder(t *testing.T) {
	n := 0
	for _, c := range all() {
		if !strings.Contains(c.Name, "-before-") || strings.Contains(c.Name, "duplicate") || strings.Contains(c.Name, "same-path") {
			continue
		}
		n++
		if len(c.Text) != 3 || !strings.HasPrefix(c.Text[0], "Two faults. The first: ") || !strings.HasPrefix(c.Text[2], "The first decides: ") {
			t.Errorf("%s does not say what it holds and why: %q", c.Name, c.Text)
		}
	}
	if n < 500 {
		t.Errorf("only %d pairs", n)
	}
}
