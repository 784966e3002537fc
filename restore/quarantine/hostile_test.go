package quarantine_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// recorded is a store with the record of candidate a in all states, and the file
// of it.
func recorded(t testing.TB) (s *quarantine.Store, file string, raw []byte) {
	t.Helper()
	path, c := private(t), candidate("a")
	s = open(t, path, nil)
	must(t, s.Hold(t.Context(), c, findings("approval_vague sure")[0]))
	_, err := s.Release(t.Context(), c.Source, "looked at")
	must(t, err)
	judge(t, s, c, findings("artifact_status \u00e9\n", "cross_agent_identity b"), "cross_agent_identity b", "artifact_status \u00e9\n")
	judge(t, s, c, findings("artifact_status \u00e9\n"), "artifact_status \u00e9\n")
	return s, only(t, path), read(t, only(t, path))
}

// only is the one file in a directory.
func only(t testing.TB, dir string) string {
	t.Helper()
	names, err := os.ReadDir(dir)
	must(t, err)
	if len(names) != 1 {
		t.Fatalf("there are %v", names)
	}
	return filepath.Join(dir, names[0].Name())
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	must(t, err)
	return raw
}

// counted requires a damaged record of candidate a: no candidate is judged free, and nothing of
// it changes.
func counted(t testing.TB, s *quarantine.Store, what string) {
	t.Helper()
	c := candidate("a")
	held, changed, judgeErr := s.Update(t.Context(), c, nil)
	asked, heldErr := s.Held(t.Context(), c, nil)
	all, listErr := s.List(t.Context())
	shown, showErr := s.Show(t.Context(), c.Source)
	released, releaseErr := s.Release(t.Context(), c.Source, "ok")
	if held != nil || changed != nil || asked != nil || all != nil || shown.Source != "" || released.Source != "" {
		t.Errorf("%s: there is a result", what)
	}
	holdErr := s.Hold(t.Context(), c, findings("approval_vague sure")[0])
	for i, err := range []error{judgeErr, heldErr, listErr, showErr, releaseErr, holdErr} {
		var record *quarantine.RecordError
		if !errors.As(err, &record) || !strings.Contains(record.Path, c.Source) || !strings.Contains(err.Error(), "treated as held") {
			t.Errorf("%s: call %d: %v", what, i, err)
		}
	}
}

// free reports whether candidate a would be judged free with what stands in a store.
func free(t testing.TB, s *quarantine.Store) bool {
	t.Helper()
	held, err := s.Held(t.Context(), candidate("a"), findings("artifact_status \u00e9\n"))
	return err == nil && len(held) == 0
}

// TestEveryByte changes each byte of a record: it is an error, or another record
// of the same form. Each length of it is an error.
func TestEveryByte(t *testing.T) {
	s, file, raw := recorded(t)
	tried := sample.Every(t, 7)
	for i := tried.First - 1; i < len(raw); i += tried.Every {
		changed := bytes.Clone(raw)
		changed[i] ^= 1 << (i / tried.Every % 8)
		must(t, os.WriteFile(file, changed, 0o600))
		if free(t, s) {
			t.Errorf("byte %d: the candidate is free with %q", i, changed)
		}
		must(t, os.WriteFile(file, raw[:i], 0o600))
		if _, err := s.Show(t.Context(), candidate("a").Source); err == nil {
			t.Errorf("%d bytes of it are a record", i)
		}
	}
	must(t, os.WriteFile(file, raw[:len(raw)/2], 0o600))
	counted(t, s, "a half")
	must(t, os.WriteFile(file, raw, 0o600))
	judge(t, s, candidate("a"), findings("artifact_status \u00e9\n"), "artifact_status \u00e9\n")
}

// TestForms: a record that anything is missing from, or that says what none can, is
// an error.
func TestForms(t *testing.T) {
	s, file, raw := recorded(t)
	since := field(t, raw, "since")
	for _, change := range [][2]string{
		{`{"marks"`, ` {"marks"`}, {`{"marks"`, `{"a":1,"marks"`}, {`"version":4`, `"version":4,"x":1`}, {`"version":4`, `"version":3`}, {`"version":4`, `"version":4.0`}, {`"version":4`, `"version":"4"`},
		{strings.Repeat("a", 64), strings.Repeat("b", 64)}, {`"/root"`, `"root"`}, {`"/root"`, `""`}, {`"/root"`, `null`}, {`["/p/r1",`, `["p/r1",`}, {`["/p/r1","/p/r2"]`, `null`}, {`["/p/r1","/p/r2"]`, `"/p/r1"`},
		{`"rule":"artifact_status"`, `"rule":"artifact"`}, {`"rule":"artifact_status"`, `"Rule":"artifact_status"`}, {`"rule":"artifact_status"`, `"rule":null`}, {`"detail":"sure"`, `"detail":""`}, {`"detail":"sure"`, `"detail":"s\u0075re"`},
		{`"detail":"sure"`, `"detail":"` + strings.Repeat("x", quarantine.MaxDetail+1) + `"`}, {`"detail":"sure"`, "\"detail\":\"\xff\""},
		{since, `"yesterday"`}, {since, `null`}, {since, strings.Replace(since, "Z", "+00:00", 1)}, {since, strings.Replace(since, "Z", "+01:00", 1)},
		{`"reason":"looked at"`, `"reason":""`}, {`"reason":"looked at"`, `"reason":"a\nb"`}, {`"operator":` + field(t, raw, "operator"), `"operator":""`},
		{`"rule":"cross_agent_identity"`, `"rule":"approval_vague"`}, // sticky, and cleared
		{`"detail":"b"`, `"detail":"\u00e9\n"`}, {`"marks":[`, `"marks":{`},
	} {
		changed := bytes.Replace(raw, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(changed, raw) {
			t.Fatalf("the record does not hold %s: %s", change[0], raw)
		}
		must(t, os.WriteFile(file, changed, 0o600))
		counted(t, s, change[1])
	}
	marks := raw[:bytes.Index(raw, []byte(`],"restore_root"`))]
	for _, list := range []string{`{"marks":[`, string(marks) + "," + string(marks[len(`{"marks":[`):]), `{"marks":[null`} {
		must(t, os.WriteFile(file, append([]byte(list), raw[len(marks):]...), 0o600))
		counted(t, s, list)
	}
}

// field is the first value of a member that is text, as it stands.
func field(t testing.TB, raw []byte, name string) string {
	t.Helper()
	_, rest, ok := bytes.Cut(raw, []byte(`"`+name+`":"`))
	if !ok {
		t.Fatalf("no %s in %s", name, raw)
	}
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return `"` + string(value) + `"`
}

// TestTwoStates: a mark is not both cleared and released.
func TestTwoStates(t *testing.T) {
	s, file, raw := recorded(t)
	c, err := s.Show(t.Context(), candidate("a").Source)
	must(t, err)
	cleared := c.Marks[2].Cleared.Format("2006-01-02T15:04:05.999999999Z07:00")
	release := `"released":{"operator":"x","reason":"y","time":"` + cleared + `"}`
	changed := bytes.Replace(raw, []byte(`"cleared":"`+cleared+`","detail":"b","released":null`), []byte(`"cleared":"`+cleared+`","detail":"b",`+release), 1)
	if bytes.Equal(changed, raw) {
		t.Fatal("the record is another")
	}
	must(t, os.WriteFile(file, changed, 0o600))
	counted(t, s, "both")
}

// TestWrongTypes: what is not a file is not opened, and what is too large is not read.
func TestWrongTypes(t *testing.T) {
	for name, place := range map[string]func(file string) error{
		"fifo":      func(file string) error { return unix.Mkfifo(file, 0o600) },
		"directory": func(file string) error { return os.Mkdir(file, 0o700) },
		"dangling":  func(file string) error { return os.Symlink("none", file) },
		"link":      func(file string) error { return os.Symlink(".kept", file) },
		"empty":     func(file string) error { return os.WriteFile(file, nil, 0o600) },
		"large":     func(file string) error { return large(file) },
		"socket":    func(file string) error { return unix.Mknod(file, unix.S_IFSOCK|0o600, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s, file, _ := recorded(t)
			must(t, os.Rename(file, filepath.Join(filepath.Dir(file), ".kept")))
			must(t, place(file))
			counted(t, s, name)
		})
	}
}

// large makes a file that has a byte more than a record, and is one but for that.
func large(file string) error {
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(file), ".kept"))
	if err != nil {
		return err
	}
	path := strings.Repeat("x", quarantine.MaxRecord+1-len(raw)+len("root"))
	return os.WriteFile(file, bytes.Replace(raw, []byte(`"/root"`), []byte(`"/`+path+`"`), 1), 0o600)
}

// TestTooLarge: a record that could not be read again is not written.
func TestTooLarge(t *testing.T) {
	path, c := private(t), candidate("a")
	logged := 0
	s := open(t, path, func(quarantine.Change) error { logged++; return nil })
	c.RunDirs = []string{"/" + strings.Repeat("x", quarantine.MaxRecord)}
	if held, _, err := s.Update(t.Context(), c, findings("artifact_status x")); err == nil || held != nil || logged != 0 {
		t.Errorf("held by %v, %d logged", held, logged)
	}
}

// TestStrangeNames: what begins as the record of a candidate and is none, is an
// error of it; and what is not a record at all is one of the list. Names with a dot
// are nothing.
func TestStrangeNames(t *testing.T) {
	a := candidate("a").Source
	for _, name := range []string{a, a + ".json", a + ".0.json", a + ".04.json", a + ".+4.json", a + ".4", a + ".-5.json", a + ".+5.json", a + ".5", a + ".5.json.json", a + ".5.JSON", a + "a.5.json", a + ".99999999999999999999.json", a + ".x.json"} {
		s, file, raw := recorded(t)
		must(t, os.WriteFile(filepath.Join(filepath.Dir(file), name), raw, 0o600))
		counted(t, s, name)
	}
	s, file, _ := recorded(t)
	found := findings("artifact_status \u00e9\n")
	must(t, os.WriteFile(filepath.Join(filepath.Dir(file), ".spectrum-x"), nil, 0o600))
	_, err := s.List(t.Context())
	must(t, err)
	must(t, os.WriteFile(filepath.Join(filepath.Dir(file), "README"), nil, 0o600))
	judge(t, s, candidate("a"), found, "artifact_status \u00e9\n")
	var record *quarantine.RecordError
	if _, err := s.List(t.Context()); !errors.As(err, &record) || filepath.Base(record.Path) != "README" {
		t.Errorf("listed: %v", err)
	}
}

// TestNoFallback: a newer version that is damaged is not passed over for an older
// one, nor one that was renamed taken.
func TestNoFallback(t *testing.T) {
	s, file, raw := recorded(t)
	a := candidate("a").Source
	next := filepath.Join(filepath.Dir(file), a+".5.json")
	for what, content := range map[string][]byte{"empty": nil, "the older one": raw} {
		must(t, os.WriteFile(next, content, 0o600))
		counted(t, s, what)
	}
	must(t, os.Remove(next))
	must(t, os.Rename(file, filepath.Join(filepath.Dir(file), strings.Repeat("c", 64)+".4.json")))
	c := candidate("c")
	if held, err := s.Held(t.Context(), c, nil); err == nil || held != nil {
		t.Errorf("the record of another: %v", held)
	}
}

// FuzzRecord reads any bytes as a record. From what is accepted it goes on: the
// next version is a record, in which all that was computed and held is cleared.
func FuzzRecord(f *testing.F) {
	_, _, raw := recorded(f)
	f.Add(raw)
	f.Add([]byte("{}"))
	f.Add([]byte(fmt.Sprintf(`{"marks":[],"restore_root":"/","run_dirs":[],"source":%q,"version":4}`, candidate("a").Source)))
	f.Fuzz(func(t *testing.T, data []byte) {
		before, after, err := quarantine.Again(data)
		if err != nil {
			return
		}
		sticky := slices.DeleteFunc(words(before.Held()), func(w string) bool { return !strings.HasPrefix(w, "approval_vague ") })
		if len(before.Marks) == 0 || len(before.Marks) != len(after.Marks) || !slices.Equal(words(after.Held()), sticky) {
			t.Errorf("marks %+v, then %+v", before.Marks, after.Marks)
		}
	})
}
