package hostile

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"

	"github.com/spectrumfs/spectrum/test/forge"
	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// fileRows are artifacts that are no files, or too large: none is opened for
// reading, so none is waited for.
func fileRows() (entries []entry) {
	n := 0
	for _, c := range []struct {
		row  int
		name string
		with func(path string) error
	}{
		{47, "sparse 1 TiB", harness.Sparse(1 << 40)},
		{48, "link to a good one", nil},
		{48, "dangling link", harness.LinkTo("nowhere")},
		{48, "FIFO", harness.FIFO},
		{48, "directory", harness.Directory},
		{48, "character device", harness.Device(unix.S_IFCHR, 1, 5)},
		{48, "block device", harness.Device(unix.S_IFBLK, 7, 0)},
		{48, "socket", harness.Socket},
	} {
		for _, artifact := range inTurn(n) {
			entries = append(entries, entry{c.row, c.name + " as " + artifact, func(p *place) {
				path := p.last().dir + "/" + artifact
				if c.row == 48 {
					p.closed = []string{path}
				}
				if c.with == nil {
					harness.Must(p, os.Rename(path, p.outside+"/good"))
					harness.Must(p, os.Symlink(p.outside+"/good", path))
					p.closed = append(p.closed, p.outside+"/good")
					return
				}
				p.replace(path, c.with)
			}, malformedIn(artifact)})
		}
		n++
	}
	for _, artifact := range forge.Names {
		limit := int64(16 << 20)
		if artifact == forge.OutputHashes {
			limit = 256 << 20
		}
		entries = append(entries, entry{47, "one byte above the limit, " + artifact, func(p *place) {
			path := p.last().dir + "/" + artifact
			if artifact != forge.OutputHashes { // JSON of that size; of the other one only the size is so
				p.edit(func(r forge.Run) {
					r[artifact] = append(r[artifact], strings.Repeat(" ", int(limit)+1-len(r[artifact]))...)
					if artifact == forge.TaskSpec {
						r.Sign(forge.Key(1)) // its bytes are signed as they are
					}
				})
				return
			}
			harness.Must(p, os.Truncate(path, limit+1))
		}, malformedIn(artifact)})
	}
	return append(entries, entry{49, "opened once", openedOnce, planned(accepted, accepted, taken)})
}

// openedOnce counts how often each artifact is opened to be read. Seal reads
// none.
func openedOnce(p *place) {
	p.before = func(command string) func() {
		var watches []*watch
		for _, name := range forge.Names {
			watches = append(watches, watchOpens(p, p.last().dir+"/"+name))
		}
		want := 1
		if command == "seal" {
			want = 0
		}
		return func() {
			for i, w := range watches {
				if n := w.count(); n != want {
					p.Errorf("%s opened %s %d times", command, forge.Names[i], n)
				}
			}
		}
	}
}

// A watch counts how often a file is opened for reading or writing.
type watch struct {
	p  *place
	fd int
}

func watchOpens(p *place, path string) *watch {
	p.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	harness.Must(p, err)
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_ACCESS|unix.IN_CLOSE)
	harness.Must(p, err)
	return &watch{p, fd}
}

// count ends the watch.
func (w *watch) count() (n int) {
	w.p.Helper()
	defer unix.Close(w.fd)
	events := make([]byte, 64<<10)
	got, err := unix.Read(w.fd, events)
	if errors.Is(err, unix.EAGAIN) {
		return 0
	}
	harness.Must(w.p, err)
	// Two events that are the same are one, unless another comes in between:
	// hence those of reading and closing.
	for events = events[:got]; len(events) > 0; events = events[unix.SizeofInotifyEvent:] {
		if binary.NativeEndian.Uint32(events[4:])&unix.IN_OPEN != 0 {
			n++
		}
	}
	return n
}

// hashesAre signs OUTPUT_HASHES.json with any value for hashes.
func hashesAre(value any) func(p *place) {
	return func(p *place) {
		p.edit(func(r forge.Run) {
			r.Edit(forge.OutputHashes, func(f forge.Fields) { f["hashes"] = value })
			r.Sign(forge.Key(1))
		})
	}
}

func hashIs(value any) func(p *place) { return hashesAre(forge.Fields{"gen/c.txt": value}) }

// edited changes the fields of an artifact after it was signed.
func edited(artifact string, change func(forge.Fields)) func(p *place) {
	return func(p *place) { p.edit(func(r forge.Run) { r.Edit(artifact, change) }) }
}

func set(name string, value any) func(forge.Fields) {
	return func(f forge.Fields) { f[name] = value }
}

func unset(name string) func(forge.Fields) {
	return func(f forge.Fields) { delete(f, name) }
}

func beside(name string, with func(path string) error) func(p *place) {
	return func(p *place) { p.replace(p.last().dir+"/"+name, with) }
}

// fieldRows are artifacts that are JSON and say something wrong.
func fieldRows() (entries []entry) {
	const noHashes verdict = "RESTORE_OUTPUT_HASHES_HASHES_MISSING"
	good := forge.Hash(content)
	refused := func(row int, name string, make func(p *place), verify verdict) {
		entries = append(entries, entry{row, name, make, planned(verify, strict, taken)})
	}
	for name, value := range map[string]any{"null": nil, "list": []any{}, "number": 1, "string": good} {
		entries = append(entries, entry{51, name, hashesAre(value), planned(malformed, noHashes, taken)})
	}
	entries = append(entries,
		entry{51, "empty object", hashesAre(forge.Fields{}), planned(accepted, "RESTORE_OUTPUT_HASHES_HASHES_EMPTY", taken)},
		entry{51, "missing", edited(forge.OutputHashes, unset("hashes")), planned("FIELD_MISSING", noHashes, taken)})
	for name, value := range map[string]any{"null": nil, "number": 7, "object": forge.Fields{}} {
		refused(52, name, hashIs(value), malformed)
	}
	for name, value := range map[string]string{
		"upper case": strings.ToUpper(good), "upper-case digits": "sha256:" + strings.ToUpper(good[7:]), "63 digits": good[:len(good)-1], "65 digits": good + "0",
		"sha512": "sha512:" + good[7:], "no prefix": good[7:], "trailing space": good + " ", "empty": "",
	} {
		refused(52, name, hashIs(value), mismatch)
	}
	refused(53, "extra in identity", edited(forge.Identity, set("x", 1)), "FIELD_EXTRA")
	refused(53, "missing in identity", edited(forge.Identity, unset("public_key")), "FIELD_MISSING")
	refused(53, "extra and missing in identity", edited(forge.Identity, func(f forge.Fields) { delete(f, "public_key"); f["x"] = 1 }), "FIELD_EXTRA")
	refused(53, "extra in payload", signedPayload(set("x", 1)), "FIELD_EXTRA")
	refused(53, "missing in payload", signedPayload(unset("decision")), "FIELD_MISSING")
	refused(53, "extra and missing in payload", signedPayload(func(f forge.Fields) { delete(f, "decision"); f["x"] = 1 }), "FIELD_EXTRA")
	refused(53, "extra in signature", edited(forge.Signature, set("x", 1)), "SIGNATURE_MALFORMED")
	refused(53, "missing in signature", edited(forge.Signature, unset("signature")), "SIGNATURE_INCOMPLETE")
	entries = append(entries,
		entry{53, "signed_at in signature", edited(forge.Signature, set("signed_at", "never")), planned(accepted, accepted, taken)},
		entry{54, "SIGNATURE.json.bak", beside("SIGNATURE.json.bak", file("x")), planned(accepted, accepted, taken)})
	for _, name := range []string{"SIGNATURE2.json", "SIGNED_PAYLOAD.old.json", "VALIDATOR_IDENTITY-1.json"} {
		refused(54, name, beside(name, emptyFile), "ARTIFACT_EXTRA")
	}
	for name, value := range map[string]any{"true as a string": "true", "1": 1, "null": nil, "false": false, "list": []any{true}} {
		entries = append(entries, entry{55, name, func(p *place) {
			p.edit(func(r forge.Run) {
				r.Set(forge.Proof, forge.Fields{"restoration_result": forge.Fields{"verified": value}})
			})
		}, planned("RESTORATION_FAILED", "RESTORE_PROOF_NOT_VERIFIED", taken)})
	}
	for _, name := range []string{"logs", "tmp", "transcript.json"} {
		for what, with := range map[string]func(string) error{
			"file": file("x"), "directory": harness.Directory, "link": harness.LinkTo("TASK_SPEC.json"), "dangling link": harness.LinkTo("nowhere"), "FIFO": harness.FIFO,
		} {
			refused(56, name+" as a "+what, beside(name, with), "FORBIDDEN_ARTIFACT")
		}
	}
	return entries
}

// signedPayload changes the payload, and signs it as it is then.
func signedPayload(change func(forge.Fields)) func(p *place) {
	return func(p *place) {
		p.edit(func(r forge.Run) {
			r.Edit(forge.SignedPayload, change)
			r.SignPayload(forge.Key(1))
		})
	}
}
