package fusemount

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/spectrumfs/spectrum/fusefs"
)

var errNoTree = errors.New("no tree today")

func textFile(path, text string) fusefs.File {
	return fusefs.File{Path: path, Size: int64(len(text)), Source: fusefs.SourceFunc(func() (fusefs.Content, error) {
		return memory{bytes.NewReader([]byte(text))}, nil
	})}
}

// memory is a content that no other code can change.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// attributed is a source with extended attributes.
type attributed struct {
	fusefs.Source
	attrs []fusefs.XAttr
}

func (a attributed) XAttrs() []fusefs.XAttr { return a.attrs }

var someXAttrs = []fusefs.XAttr{
	{Name: "user.spectrum.sha256", Value: "sha256:" + strings.Repeat("0", 64)},
	{Name: "user.empty", Value: ""},
	{Name: "user.long", Value: strings.Repeat("x", 60000)},
	{Name: "user.\xff odd", Value: "\x00\xff"},
}

// copiesOf is the content of a live file: its number, so often that contents differ in
// length.
func copiesOf(n int64) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%015d\n", n), int(n*37%1500)+1)
}

// numberOf returns the number of a content, or what is wrong with it.
func numberOf(data []byte) (n int64, err error) {
	if _, err := fmt.Sscanf(string(data[:min(16, len(data))]), "%d", &n); err != nil {
		return 0, fmt.Errorf("%d bytes that begin with %q", len(data), data[:min(16, len(data))])
	}
	if want := copiesOf(n); !bytes.Equal(data, want) {
		return 0, fmt.Errorf("%d bytes that begin with %d, want %d", len(data), n, len(want))
	}
	return n, nil
}
