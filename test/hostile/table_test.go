package hostile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A verdict is what a command has to answer: accepted, one of some codes (with
// "|" between them), taken, or "none: " and why there is none.
type verdict string

const (
	accepted verdict = "OK"
	refusal  verdict = "REFUSED" // by no law: the command tells why
	machine  verdict = "MACHINE_FAULT"

	// taken is what seal says of a row about the bytes of artifacts, which it
	// does not take: the run directory holds such artifacts already, so it is
	// refused and stays as it is.
	taken verdict = "taken"

	strict    verdict = "RESTORE_VERIFY_STRICT_FAILED"
	traversal verdict = "RESTORE_PATH_TRAVERSAL_DETECTED"
	nullByte  verdict = "RESTORE_PATH_NULL_BYTE_DETECTED"
	reserved  verdict = "RESTORE_RESULT_ARTIFACT_WRITE_FAILED"
	irregular verdict = "RESTORE_SOURCE_NOT_REGULAR_FILE"
	escape    verdict = "RESTORE_SYMLINK_ESCAPE_DETECTED"
	exists    verdict = "RESTORE_TARGET_PATH_EXISTS"

	quarantined verdict = "CANDIDATE_QUARANTINED" // of the trust layer
	revoked     verdict = "VALIDATOR_REVOKED"

	malformed verdict = "ARTIFACT_MALFORMED"
	missing   verdict = "OUTPUT_MISSING"
	mismatch  verdict = "HASH_MISMATCH"

	elsewhere verdict = "none: test/limits has the sizes that take long"
)

func none(why string) verdict { return verdict("none: " + why) }

func (v verdict) isNone() bool { return strings.HasPrefix(string(v), "none: ") }

func (v verdict) codes() []string { return strings.Split(string(v), "|") }

// verdicts are the five cells of an entry.
type verdicts struct{ verify, mount, preview, commit, seal verdict }

// planned is one verdict of all three commands that plan a restore.
func planned(verify, restore, seal verdict) verdicts {
	return verdicts{verify, restore, restore, restore, seal}
}

// always is one verdict of all commands.
func always(v verdict) verdicts { return verdicts{v, v, v, v, v} }

func (v verdicts) cells() map[string]verdict {
	return map[string]verdict{"verify": v.verify, "mount": v.mount, "preview": v.preview, "commit": v.commit, "seal": v.seal}
}

// An entry is one tree of a row of the list.
type entry struct {
	row  int
	name string
	make func(p *place) // changes the good project that every place begins with
	want verdicts
}

// rows is how long the list is.
const rows = 87

// table is the whole table but for the alike.
func table() []entry {
	return slices.Concat(pathRows(), lengthRows(), nameRows(), textRows(), fileRows(), fieldRows(),
		bindingRows(), signatureRows(), sourceRows(), movingRows(), oddSourceRows(), rootRows(), obstacleRows(), chainRows(), chainTreeRows())
}

// alike are the trees of the table of which there are thousands of a kind.
func alike() []entry { return slices.Concat(bitRows(), otherTextRows()) }

// TestTableIsWhole: every number of the list is there, every cell says
// something, and nothing that is not a verdict.
func TestTableIsWhole(t *testing.T) {
	seen, names := map[int]int{}, map[string]bool{}
	words := map[verdict]bool{accepted: true, refusal: true, machine: true, taken: true}
	for _, e := range slices.Concat(table(), alike()) {
		seen[e.row]++
		if full := e.title(); names[full] {
			t.Errorf("two entries are called %q", full)
		} else {
			names[full] = true
		}
		for command, v := range e.want.cells() {
			if v.isNone() && len(v) > len("none: ")+10 || words[v] && (v != taken || command == "seal") {
				continue
			}
			for _, code := range v.codes() {
				if !known(command, code) {
					t.Errorf("%s: %s: %q is not a verdict", e.title(), command, v)
				}
			}
		}
		if e.make == nil && !slices.ContainsFunc(mapsValues(e.want.cells()), verdict.isNone) {
			t.Errorf("%s has no tree", e.title())
		}
	}
	for row := 1; row <= rows; row++ {
		if seen[row] == 0 {
			t.Errorf("row %d is missing", row)
		}
	}
	if len(seen) != rows {
		t.Errorf("there are %d rows, not %d", len(seen), rows)
	}
	t.Logf("%d rows, %d trees", len(seen), len(names))
}

func mapsValues(m map[string]verdict) (all []verdict) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

func (e entry) title() string { return fmt.Sprintf("%02d %s", e.row, e.name) }

// known reports whether a command may answer with a code: the codes of SPECTRUM-05 are those of
// verify, the codes of SPECTRUM-06 those of the others.
func known(command, code string) bool {
	switch {
	case command == "verify":
		return slices.Contains(verifyCodes, code) || code == "USAGE"
	case command == "seal":
		return false
	case code == string(refusal) || code == string(quarantined) || code == string(revoked) || code == "USAGE":
		return true
	default:
		_, ok := phases[code]
		return ok
	}
}

// verifyCodes are the codes of SPECTRUM-05.
var verifyCodes = strings.Fields(`ALGORITHM_UNSUPPORTED ARTIFACT_EXTRA ARTIFACT_MALFORMED ARTIFACT_MISSING
	BUNDLE_ROOT_MISMATCH CHAIN_DUPLICATE_RUN CHAIN_EMPTY CHAIN_ROOT_MISMATCH DECISION_INVALID FIELD_EXTRA FIELD_MISSING
	FORBIDDEN_ARTIFACT HASH_MISMATCH IDENTITY_INVALID IDENTITY_MISMATCH IDENTITY_MULTIPLE KEY_INVALID OUTPUT_MISSING
	PAYLOAD_MISMATCH RESTORATION_FAILED SERIALIZATION_INVALID SIGNATURE_INCOMPLETE SIGNATURE_INVALID
	SIGNATURE_MALFORMED SIGNATURE_MULTIPLE`)

// phases gives the codes of SPECTRUM-06 that a hostile bundle can cause their
// phase (section 8.3).
var phases = map[string]string{
	"RESTORE_VERIFY_STRICT_FAILED":             "PREFLIGHT",
	"RESTORE_PROOF_MISSING":                    "PREFLIGHT",
	"RESTORE_PROOF_MALFORMED":                  "PREFLIGHT",
	"RESTORE_PROOF_RESTORATION_RESULT_MISSING": "PREFLIGHT",
	"RESTORE_PROOF_NOT_VERIFIED":               "PREFLIGHT",
	"RESTORE_OUTPUT_HASHES_MISSING":            "PREFLIGHT",
	"RESTORE_OUTPUT_HASHES_MALFORMED":          "PREFLIGHT",
	"RESTORE_OUTPUT_HASHES_HASHES_MISSING":     "PREFLIGHT",
	"RESTORE_OUTPUT_HASHES_HASHES_EMPTY":       "PREFLIGHT",
	"RESTORE_TARGET_MISSING":                   "PREFLIGHT",
	"RESTORE_TARGET_NOT_ABSOLUTE":              "PREFLIGHT",
	"RESTORE_TARGET_NOT_EXIST":                 "PREFLIGHT",
	"RESTORE_TARGET_NOT_DIRECTORY":             "PREFLIGHT",
	"RESTORE_TARGET_NOT_WRITABLE":              "PREFLIGHT",
	"RESTORE_PATH_TRAVERSAL_DETECTED":          "PREFLIGHT",
	"RESTORE_PATH_NULL_BYTE_DETECTED":          "PREFLIGHT",
	"RESTORE_SYMLINK_ESCAPE_DETECTED":          "PREFLIGHT",
	"RESTORE_CHAIN_RUN_ID_DUPLICATE":           "PREFLIGHT",
	"RESTORE_CHAIN_TARGET_DIR_EXISTS":          "PREFLIGHT",
	"RESTORE_SOURCE_MISSING":                   "PLAN",
	"RESTORE_SOURCE_NOT_REGULAR_FILE":          "PLAN",
	"RESTORE_TARGET_PATH_EXISTS":               "EXECUTE",
	"RESTORE_STAGING_HASH_MISMATCH":            "EXECUTE",
	"RESTORE_FINALIZE_FAILED":                  "EXECUTE",
	"RESTORE_RESULT_ARTIFACT_WRITE_FAILED":     "VERIFY",
	"RESTORE_INTERNAL_ERROR":                   "EXECUTE",
}

// status is the exit status that goes with a code.
func status(code string) int {
	switch code {
	case string(accepted):
		return 0
	case "USAGE":
		return 64
	case string(machine), "RESTORE_INTERNAL_ERROR": // the law has no code for a fault of the machine
		return 74
	case string(quarantined), string(revoked):
		return 5
	default:
		return 1
	}
}
