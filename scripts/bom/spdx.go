package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// The members of an SPDX 2.3 document that are said of a binary. The order is that of
// the specification.
type (
	document struct {
		Version       string         `json:"spdxVersion"`
		DataLicense   string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      creation       `json:"creationInfo"`
		Packages      []part         `json:"packages"`
		Relationships []relationship `json:"relationships"`
	}
	creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	part struct {
		Name             string      `json:"name"`
		ID               string      `json:"SPDXID"`
		Version          string      `json:"versionInfo"`
		DownloadLocation string      `json:"downloadLocation"`
		FilesAnalyzed    bool        `json:"filesAnalyzed"`
		Checksums        []checksum  `json:"checksums,omitempty"`
		Concluded        string      `json:"licenseConcluded"`
		Declared         string      `json:"licenseDeclared"`
		Copyright        string      `json:"copyrightText"`
		Comment          string      `json:"comment,omitempty"`
		References       []reference `json:"externalRefs"`
	}
	checksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	reference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	relationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

// unknown is SPDX's value for a field that is not stated.
const unknown = "NOASSERTION"

// spdx returns the document of a binary. It does not assert licences or their holders: the
// licence texts are shipped beside it.
func spdx(info *buildinfo.BuildInfo, version, binary string) ([]byte, error) {
	created, err := epoch()
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(raw))
	program := partOf(module{path: info.Main.Path, version: version})
	program.Checksums = []checksum{{"SHA256", sum}}
	name := fmt.Sprintf("spectrum-%s-%s-%s", version, setting(info, "GOOS"), setting(info, "GOARCH"))
	doc := document{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name,
		Namespace:     "https://" + info.Main.Path + "/spdx/" + name + "-" + sum,
		Creation:      creation{created.Format(time.RFC3339), []string{"Tool: spectrum-bom"}},
		Packages:      []part{program},
		Relationships: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", program.ID}},
	}
	standard := partOf(module{path: "stdlib", version: strings.TrimPrefix(info.GoVersion, "go")})
	standard.Declared = "BSD-3-Clause"
	linked := []part{standard}
	for _, m := range modules(info) {
		linked = append(linked, partOf(m))
	}
	for _, p := range linked {
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, relationship{program.ID, "DEPENDS_ON", p.ID})
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	return append(text, '\n'), err
}

// notInID is what an SPDX identifier cannot have.
var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func partOf(m module) part {
	p := part{
		Name: m.path, ID: "SPDXRef-" + notInID.ReplaceAllString(m.path+"-"+m.version, "-"), Version: m.version,
		DownloadLocation: unknown, Concluded: unknown, Declared: unknown, Copyright: unknown,
		References: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.path + "@" + strings.ReplaceAll(m.version, "+", "%2B")}},
	}
	if m.sum != "" {
		p.Comment = "go.sum: " + m.sum
	}
	return p
}

// setting is what the binary was built with.
func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return "unknown"
}
