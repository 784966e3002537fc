package view

import (
	"regexp"
	"testing"

	"github.com/spectrumfs/spectrum/test/plainjson"
)

// FuzzControl reads any bytes as what a view says of itself: there is an error, or they are read
// as a plain parser reads them. A status cannot have two members, also not in different letter
// case, about tampering of the view.
func FuzzControl(f *testing.F) {
	for _, text := range []string{
		`{"view_id":"v","tampered":true}`, `{"tampered":true,"tampered":false}`, `{"tampered":false,"t\u0061mpered":true}`, `{"Tampered":true}`, `{"tampered":1}`, `[]`, `null`, ``,
		`{"project_root":"/p","run_dirs":["/p/r"],"chain":true,"chain_root":"c","runs":[{"bundle_root":"b"}],"unsigned_artifacts":["PROOF.json"]}`,
		`{"runs":[{"bundle_root":"b"},{"bundle_root":"b","bundle_root":"c"}]}`, `{"run_dirs":["\ud800"]}`, "{\"view_id\":\"\xff\"}", `{"tampered":null}`, `{"runs":null}`, `{} {}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		tree, plainErr := plainjson.Parse(text)
		object, isObject := tree.(map[string]any)
		var status StatusRecord
		var shown CandidateRecord
		errStatus, errShown := parseControl(text, &status), parseControl(text, &shown)
		if errStatus == nil || errShown == nil {
			checkBelieved(t, text, plainErr)
		}
		if plainErr != nil || !isObject {
			return
		}
		if said := object["tampered"]; errStatus == nil && (status.Tampered != (said == true) || said != nil && said != false && said != true) {
			t.Errorf("%q was read as tampered: %v", text, status.Tampered)
		}
		if errStatus == nil && !sameText(status.ViewID, object["view_id"]) {
			t.Errorf("%q was read as of view %q", text, status.ViewID)
		}
		if errShown == nil {
			checkShownAs(t, text, &shown, object)
		}
	})
}

var (
	deepText = regexp.MustCompile(`(?s)^(?:[^\[{]*[\[{]){513}`)
	longText = regexp.MustCompile(`[0-9][eE][+-]?[0-9]`)
)

// checkBelieved: accepted input is JSON, except where the parser is stricter than JSON.
func checkBelieved(t *testing.T, text []byte, plainErr error) {
	t.Helper()
	if plainErr != nil && !deepText.Match(text) && !longText.Match(text) {
		t.Errorf("%q was believed: %v", text, plainErr)
	}
}

func sameText(got string, said any) bool { return said == nil && got == "" || said == got }

func checkShownAs(t *testing.T, text []byte, shown *CandidateRecord, object map[string]any) {
	t.Helper()
	dirs, _ := object["run_dirs"].([]any)
	runs, _ := object["runs"].([]any)
	ok := sameText(shown.ProjectRoot, object["project_root"]) && len(dirs) == len(shown.RunDirs) && len(runs) == len(shown.Runs)
	for i := range dirs {
		ok = ok && sameText(shown.RunDirs[i], dirs[i])
	}
	for i := range runs {
		run, _ := runs[i].(map[string]any)
		ok = ok && sameText(shown.Runs[i].BundleRoot, run["bundle_root"])
	}
	if !ok {
		t.Errorf("%q was read as %+v", text, *shown)
	}
}
