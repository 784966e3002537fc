package verify_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// caused has every code that a test expected and got.
var caused sync.Map

// TestMain fails when a code of code.go was caused by no test. It can only
// tell when all tests ran.
func TestMain(m *testing.M) {
	flag.Parse()
	status := m.Run()
	whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" && flag.Lookup("test.skip").Value.String() == ""
	if status == 0 && whole {
		for _, code := range declaredCodes() {
			if _, ok := caused.Load(code); !ok && code != verify.OK {
				fmt.Printf("FAIL: no test causes %s\n", code)
				status = 1
			}
		}
	}
	os.Exit(status)
}

// declaredCodes reads the constants of type Code from code.go.
func declaredCodes() []verify.Code {
	file, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, 0)
	if err != nil {
		panic(err)
	}
	var codes []verify.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			panic(err)
		}
		codes = append(codes, verify.Code(text))
		return true
	})
	return codes
}

// TestCodesAreLaw compares the constants with the codes that the laws list.
func TestCodesAreLaw(t *testing.T) {
	law := strings.FieldsFunc(`ALGORITHM_UNSUPPORTED, ARTIFACT_EXTRA, ARTIFACT_MALFORMED, ARTIFACT_MISSING, BUNDLE_ROOT_MISMATCH, CHAIN_DUPLICATE_RUN,
		CHAIN_EMPTY, DECISION_INVALID, FIELD_EXTRA, FIELD_MISSING, FORBIDDEN_ARTIFACT, HASH_MISMATCH, IDENTITY_INVALID, IDENTITY_MISMATCH, KEY_INVALID,
		OUTPUT_MISSING, RESTORATION_FAILED, SERIALIZATION_INVALID, SIGNATURE_INCOMPLETE, SIGNATURE_INVALID, SIGNATURE_MALFORMED,
		STATUS_NOT_SUCCESS, CMP01_NOT_PASS, VALIDATOR_UNSUPPORTED, VALIDATOR_BUILD_ID_MISSING, VALIDATOR_BUILD_MISMATCH, BUNDLE_INCOMPLETE,
		INVALID_CHAIN_REFERENCE, CHAIN_ORDER_VIOLATION, OK`, func(r rune) bool { return strings.ContainsRune(", \t\n", r) })
	var declared []string
	for _, code := range declaredCodes() {
		declared = append(declared, string(code))
	}
	slices.Sort(law)
	slices.Sort(declared)
	if !slices.Equal(law, declared) {
		t.Errorf("declared %q\nlaw      %q", declared, law)
	}
}

// TestRejectJSON is the reject format: canonical JSON of four fields, and of
// run_id and path where there is one.
func TestRejectJSON(t *testing.T) {
	for _, c := range []struct {
		reject verify.Reject
		want   string
	}{
		{verify.Reject{Code: verify.ChainEmpty, Message: "m"}, `{"code":"CHAIN_EMPTY","details":{},"message":"m","ok":false}`},
		{verify.Reject{Code: verify.OutputMissing, Message: "m", RunID: "r", Details: aboutPath("a/\u00fc")},
			`{"code":"OUTPUT_MISSING","details":{"path":"a/` + "\u00fc" + `"},"message":"m","ok":false,"path":"a/` + "\u00fc" + `","run_id":"r"}`},
		{verify.Reject{Code: verify.FieldExtra, Message: "a\xffb", RunID: "\xfe", Details: map[string]string{"path": "x\xff", "field": "\xc3"}},
			"{\"code\":\"FIELD_EXTRA\",\"details\":{\"field\":\"\ufffd\",\"path\":\"x\ufffd\"},\"message\":\"a\ufffdb\",\"ok\":false,\"path\":\"x\ufffd\",\"run_id\":\"\ufffd\"}"},
		{verify.Reject{}, `{"code":"","details":{},"message":"","ok":false}`},
	} {
		raw, err := c.reject.JSON()
		if err != nil || string(raw) != c.want {
			t.Errorf("got  %s\nwant %s (%v)", raw, c.want, err)
		}
		if value, err := canonjson.Parse(raw); err != nil || string(value.Append(nil)) != c.want {
			t.Errorf("%s is not canonical (%v)", raw, err)
		}
	}
}

func TestRejectError(t *testing.T) {
	r := verify.Reject{Code: verify.HashMismatch, Message: "words"}
	if got := r.Error(); got != "HASH_MISMATCH: words" {
		t.Error(got)
	}
	r.RunID = "r\n1"
	if got := r.Error(); got != `HASH_MISMATCH: run "r\n1": words` {
		t.Error(got)
	}
}
