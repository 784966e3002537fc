package view

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
)

// maxControl bounds what is read of a control file of the user's own view, in bytes.
const maxControl = 256 << 20

// ReadStatus returns the status that the view on a path reports.
func ReadStatus(path string) (r StatusRecord, err error) {
	err = readControl(path, StatusFile, &r)
	return r, err
}

// ReadCandidate returns what the view on a path shows. fs.ErrNotExist: it shows no single
// candidate.
func ReadCandidate(path string) (r CandidateRecord, err error) {
	err = readControl(path, candidateFile, &r)
	return r, err
}

func readControl(path, name string, v any) error {
	raw, err := fusemount.ReadView(path, name, maxControl)
	if err != nil {
		return err
	}
	if err := parseControl(raw, v); err != nil {
		return fmt.Errorf("%s of the view on %q: %w", name, path, err)
	}
	return nil
}

func parseControl(raw []byte, v any) error { return json.Unmarshal(raw, v) }
