package staging

import (
	"bytes"
	"encoding/base64"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzJournal leaves a commit half done, then does to its journal, its staging
// directory and its targets what a text says: any bytes, records of other
// names, other journals beside it, journals that the key's owner has written
// and that say something else, strangers in the places of targets. A recovery
// of any mode, twice, leaves everything foreign as and where it is; and where a
// record is not authentic nothing at all is touched but on a person's word.
func FuzzJournal(f *testing.F) {
	var texts []string
	for i := range abandonedAt {
		for j := range vandals {
			texts = append(texts, string([]byte{byte(i), byte(j), byte(j), 1, byte(i), 2, byte(i + j), 3, 1, byte(j + 1), 2, 3, 4}))
		}
	}
	texts = append(texts,
		"\x05\x00\x01\x00{}\n00\n",                                     // INTENT is something else
		"\x00\x00\x00\x00\x00\x09\x01", "\x00\x01\x00\x01\x00\x20\x80", // a bit of a record
		"\x00\x00\x03\x01\x02", "\x04\x00\x03\x02\x01", // one record under the name of another
		"\x00\x00\x0a\x06", "\x00\x00\x0a\x02", "\x00\x00\x0b\x00\x01\x00\x01\x01", // another directory
		"\x00\x00\x07\x01\x00", "\x00\x01\x07\x04\x00", "\x04\x02\x07\x05\x00", // a target was written into
		"\x00\x00\x06\x00\x00", "\x00\x01\x06\x01\x00", "\x05\x00\x06\x05\x00", // the same content, another file
		"\x00\x00\x06\x07\x03", "\x00\x00\x06\x08\x03", "\x00\x00\x06\x03\x06", // a directory of others, a link
		"\x00\x00\x09\x01\x03\x06\x01\x00",                 // ours elsewhere, and a stranger in its place
		"\x00\x02\x0a\x02",                                 // another name, and a person who accepts it
		"\x00\x00\x07\x00\x01\x08\x08", "\x00\x00\x08\x08", // a stranger in old/0, for a target that was changed, and for one that was not
	)
	if flag.Lookup("test.fuzz").Value.String() == "" {
		texts = some(f, 35, texts)
	}
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { newRuin(t, text).check() })
}

// abandonedAt are calls of seamed commits, from which on nothing works.
var abandonedAt = []string{
	"create .spectrum06_committed.new", "rename new", "rename a", "create e", "rename 0", "rename 1", "unlink .spectrum06_prepared", "create .spectrum06_intent.new",
}

// A ruin is a commit that was left half done, and what became of it since.
type ruin struct {
	*commitFixture
	rest  []byte
	made  picture // what the commit made, as it was left
	stage string  // its staging directory, by name

	authentic map[string]bool   // records that the key's owner wrote: name and content
	intents   map[string]string // what each INTENT names
}

func newRuin(t *testing.T, text []byte) *ruin {
	t.Helper()
	r := &ruin{rest: text, authentic: map[string]bool{}}
	foreign := []string{"foreign/file", "foreign/other", "foreign/dir/", "foreign/link -> file", "b/keep", "inlink -> b"}
	r.commitFixture = newCommitFixture(t, t.TempDir(), foreign, []string{"a", "b/c", "inlink/v", "new/d/e", "new/f"}, []string{"r", "s"})
	r.lazy = true
	before := take(t, r.root)
	r.abandon(abandonedAt[r.below(len(abandonedAt))])
	r.made = take(t, r.root)
	for path, what := range before {
		if r.made[path] == what {
			delete(r.made, path)
		}
	}
	r.stage = filepath.Base(r.commitFixture.stage())
	for _, name := range journalNames {
		if raw, err := os.ReadFile(r.record(name)); err == nil {
			r.trust(name, raw)
		}
	}
	return r
}

func (r *ruin) next() int {
	if len(r.rest) == 0 {
		return 0
	}
	n := r.rest[0]
	r.rest = r.rest[1:]
	return int(n)
}

func (r *ruin) below(n int) int { return r.next() % n }

func (r *ruin) pick(from []string) string { return from[r.below(len(from))] }

func (r *ruin) record(name string) string { return r.at(r.stage + "/" + name) }

// trust remembers a record. COMMITTED and ROLLING_BACK are one under two names.
func (r *ruin) trust(name string, raw []byte) {
	if name == rollingBackName {
		name = committedName
	}
	r.authentic[name+"\x00"+plainly(raw)] = true
}

func (r *ruin) trusts(name string, raw []byte) bool {
	if name == rollingBackName {
		name = committedName
	}
	return r.authentic[name+"\x00"+plainly(raw)]
}

// plainly leaves away what says nothing: the case of the code's hex digits, and
// the last newline.
func plainly(raw []byte) string {
	text, code, _ := bytes.Cut(raw, []byte("\n"))
	return string(text) + "\n" + strings.ToLower(strings.TrimSuffix(string(code), "\n"))
}

// vandals are what a text can do. What cannot be done is left undone.
var vandals = []func(*ruin){
	(*ruin).flipRecord, (*ruin).replaceRecord, (*ruin).removeRecord, (*ruin).copyRecord, (*ruin).rewriteRecord, (*ruin).rewriteRecord,
	(*ruin).replaceTarget, (*ruin).writeIntoTarget, (*ruin).plantStranger, (*ruin).moveTarget, (*ruin).twistStage, (*ruin).secondStage,
}

// records are the names that a journal can have in its directory.
var records = []string{
	intentName, preparedName, committedName, rollingBackName, HaltedName, intentName + newSuffix, preparedName + newSuffix, committedName + newSuffix, intentName + voidSuffix,
}

func (r *ruin) flipRecord() {
	path := r.record(r.pick(records[:4]))
	if raw, err := os.ReadFile(path); err == nil && len(raw) > 0 {
		raw[(r.next()<<8+r.next())%len(raw)] ^= byte(r.next())
		_ = os.WriteFile(path, raw, 0o600)
	}
}

func (r *ruin) replaceRecord() {
	_ = os.WriteFile(r.record(r.pick(records)), r.rest, 0o600)
	r.rest = nil
}

func (r *ruin) removeRecord() { _ = os.Remove(r.record(r.pick(records))) }

func (r *ruin) copyRecord() {
	from, to := r.pick(records), r.pick(records)
	if raw, err := os.ReadFile(r.record(from)); err == nil {
		_ = os.WriteFile(r.record(to), raw, 0o600)
	}
}

var (
	journalTokens = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[^"{}\[\],:]+|[{}\[\],:]`)
	journalWords  = []string{
		`"foreign/file"`, `"foreign"`, `"foreign/dir"`, `"b"`, `"b/keep"`, `"a"`, `"../a"`, `"/etc/passwd"`, `""`, `"new/d/e"`, `"new"`, `"inlink"`, `"foreign/link"`,
		`0`, `1`, `-1`, `13`, `18446744073709551616`, `true`, `false`, `null`, `{}`, `[]`, `"x"`, `,`, `:`, `"ino"`, `"theirs"`, `"inlink/keep"`, `"s"`, `"` + HaltedName + `"`, `2`, `3`, `"swap"`, `"since"`,
	}
)

// Paths are in base64 there.
func init() {
	for _, word := range journalWords {
		if text, ok := strings.CutPrefix(word, `"`); ok {
			journalWords = append(journalWords, `"`+base64.StdEncoding.EncodeToString([]byte(strings.TrimSuffix(text, `"`)))+`"`)
		}
	}
}

// rewriteRecord changes what a record says, and has it authenticated: as if the
// key's owner had meant that.
func (r *ruin) rewriteRecord() {
	name := r.pick(records[:4])
	raw, err := os.ReadFile(r.record(name))
	if err != nil {
		return
	}
	text, _, _ := bytes.Cut(raw, []byte("\n"))
	list := journalTokens.FindAllString(string(text), -1)
	for range 1 + r.below(3) {
		if i := (r.next()<<8 + r.next()) % max(1, len(list)); len(list) > 0 {
			list[i] = r.pick(append(slices.Clip(journalWords), list[r.next()%len(list)]))
		}
	}
	text = []byte(strings.Join(list, ""))
	sealed := slices.Concat(text, []byte("\n"), hexBytes(authenticate(testKey, name, text)), []byte("\n"))
	r.trust(name, sealed)
	_ = os.WriteFile(r.record(name), sealed, 0o600)
}

func hexBytes(raw []byte) []byte {
	const digits = "0123456789abcdef"
	var text []byte
	for _, b := range raw {
		text = append(text, digits[b>>4], digits[b&15])
	}
	return text
}

// targets are the names that the commit was to make.
var targets = []string{"a", "b/c", "inlink/v", "new/d/e", "new/f", "r", "s", "new/d", "new"}

// replaceTarget has a stranger in the place of a target, which has its content
// at times, and its inode number too where the file system uses it again.
func (r *ruin) replaceTarget() {
	name := r.pick(targets)
	path := r.at(name)
	_ = os.RemoveAll(path)
	switch r.below(7) {
	case 0, 1:
		_ = os.WriteFile(path, []byte(r.content[name]), 0o644)
	case 2:
		_ = os.WriteFile(path, r.rest, 0o644)
	case 3:
		_ = os.Mkdir(path, 0o755)
	case 4:
		_ = unix.Mkfifo(path, 0o644)
	case 5:
		_ = os.Symlink(r.at("foreign/file"), path)
	case 6:
		_ = os.Link(r.at("foreign/file"), path)
	}
}

func (r *ruin) writeIntoTarget() {
	path := r.at(r.pick(targets[:7]))
	if st, err := os.Lstat(path); err != nil || !st.Mode().IsRegular() {
		return
	}
	if r.below(2) == 0 {
		_ = flipByte(path)
	} else {
		_ = appendTo(path, "x")
	}
}

// plantStranger puts a file where there is none.
func (r *ruin) plantStranger() {
	name := r.pick([]string{
		"z", "b/theirs", "new/theirs", "new/d/theirs", "foreign/dir/theirs", r.stage + "/theirs", r.stage + "/new/theirs", r.stage + "/new/new/theirs", r.stage + "/old/0",
		r.stage + "/old/3", r.stage + "/old/theirs", r.stage + "/trash/0", r.stage + "/" + holdName + "/9", r.stage + "/" + manifestStaged, ".spectrum06_chain_x.json",
	})
	if _, err := os.Lstat(r.at(name)); err != nil {
		_ = os.WriteFile(r.at(name), []byte("foreign "+name), 0o604)
	}
}

// moveTarget takes what the commit made to another name, which may be that of
// another target.
func (r *ruin) moveTarget() {
	from, to := r.pick(targets), r.pick(append([]string{"z", "foreign/z", "b/z"}, targets...))
	_ = unix.Renameat2(unix.AT_FDCWD, r.at(from), unix.AT_FDCWD, r.at(to), unix.RENAME_NOREPLACE)
}

const otherID = "11111111-2222-4333-8444-555555555555"

// twistStage makes something else of the staging directory.
func (r *ruin) twistStage() {
	path, other := r.at(r.stage), r.at(stagePrefix+otherID)
	switch r.below(7) {
	case 0:
		_ = os.Chmod(path, 0o755)
	case 1:
		_ = os.Chown(path, 65534, -1)
	case 2:
		_ = os.Rename(path, other)
	case 3:
		_ = errors.Join(os.Rename(path, r.at("old")), os.Symlink("old", path))
	case 4:
		_ = errors.Join(os.Rename(path, r.at("old")), os.Symlink("foreign", path))
	case 5:
		_ = errors.Join(os.Rename(path, r.at("old")), os.WriteFile(path, nil, 0o600))
	case 6: // a directory of this name that holds the same records
		_ = errors.Join(os.Rename(path, r.at("old")), os.Mkdir(path, 0o700))
		for _, name := range journalNames {
			_ = os.Rename(r.at("old/"+name), filepath.Join(path, name))
		}
	}
}

// secondStage puts another staging directory beside it, with the same records
// or with others.
func (r *ruin) secondStage() {
	other := r.at(stagePrefix + otherID)
	if os.Mkdir(other, 0o700) != nil {
		return
	}
	for _, name := range journalNames {
		raw, err := os.ReadFile(r.record(name))
		if err != nil {
			continue
		}
		if r.below(2) == 1 {
			raw = bytes.ReplaceAll(raw, []byte(strings.TrimPrefix(r.stage, stagePrefix)), []byte(otherID))
		}
		_ = os.WriteFile(filepath.Join(other, name), raw, 0o600)
	}
	if r.below(2) == 1 {
		_ = os.WriteFile(filepath.Join(other, "a"), []byte("foreign"), 0o600)
	}
}

// check carries out the text and recovers, twice.
func (r *ruin) check() {
	mode := Mode(r.below(3))
	for range 8 {
		if len(r.rest) > 0 {
			vandals[r.below(len(vandals))](r)
		}
	}
	for range 2 {
		r.recoverOnce(mode)
	}
}

func (r *ruin) recoverOnce(mode Mode) {
	r.t.Helper()
	now := take(r.t, r.root)
	forged := r.forged()
	r.readIntents()
	_, err := r.recover(mode)
	after := take(r.t, r.root)
	var halt *HaltError
	if err != nil && !errors.As(err, &halt) {
		r.t.Errorf("mode %d: %v", mode, err)
	}
	if forged && mode != Acknowledged {
		if d := diff(now, after, false); d != "" || err == nil {
			r.t.Fatalf("mode %d, with a record that is not authentic: %v\n%s", mode, err, d)
		}
	}
	for path, what := range now {
		if after[path] == what || r.isOurs(path, what) {
			continue
		}
		stage, _, _ := strings.Cut(path, "/")
		if _, kind := attemptOf(stage); kind != "" && slices.Contains(slices.Collect(maps.Values(after)), what) {
			continue // what was taken from its name may be put back, and all of staging may be kept
		}
		r.t.Errorf("mode %d, %v: %q was foreign\n\t%s\n\t%s", mode, err, path, what, after[path])
	}
	for path := range after {
		if _, ok := now[path]; !ok && !slices.Contains(targets, path) && !strings.HasPrefix(path, stagePrefix) && !strings.HasPrefix(path, keptPrefix) {
			r.t.Errorf("mode %d, %v: %q is new", mode, err, path)
		}
	}
}

// forged reports whether the one staging directory holds a record that was not written with the
// key.
func (r *ruin) forged() bool {
	stages, _ := filepath.Glob(r.at(stagePrefix + "*"))
	if st, err := os.Lstat(r.at(r.stage)); len(stages) != 1 || err != nil || !st.IsDir() {
		return false
	}
	for _, name := range journalNames {
		if raw, err := os.ReadFile(r.record(name)); err == nil && !r.trusts(name, raw) {
			return true
		}
	}
	return false
}

// isOurs reports whether a recovery may take a path away: it is what the commit left there, or it
// bears a name in staging that a journal says is the commit's.
func (r *ruin) isOurs(path, what string) bool {
	if r.made[path] == what {
		return true
	}
	stage, inside, _ := strings.Cut(path, "/")
	if _, kind := attemptOf(stage); kind == "" {
		return false
	}
	base := filepath.Base(path)
	own := []string{newsName, oldsName, trashName, holdName}
	if slices.Contains(own, inside) && strings.HasPrefix(what, "40") { // what is in such a directory is looked at for itself
		return true
	}
	if inside == manifestStaged { // it comes before the journal, so its name is all that there is
		return true
	}
	if inside == "" || slices.Contains(records, base) || slices.Contains(records, strings.TrimSuffix(base, voidSuffix)) {
		return true
	}
	if _, ok := r.made[path]; ok {
		return true
	}
	return strings.Contains(r.intents[stage], "/"+base+"/")
}

// readIntents remembers all components of the paths that the INTENT of each staging
// directory names.
func (r *ruin) readIntents() {
	r.intents = map[string]string{}
	for _, stage := range must1(filepath.Glob(r.at(stagePrefix + "*"))) {
		for _, name := range []string{intentName, intentName + voidSuffix} {
			raw, _ := os.ReadFile(filepath.Join(stage, name))
			for _, path := range journalPaths.FindAllSubmatch(raw, -1) {
				text, _ := base64.StdEncoding.DecodeString(string(path[1]))
				r.intents[filepath.Base(stage)] += "/" + string(text) + "/"
			}
		}
	}
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var journalPaths = regexp.MustCompile(`"path":"([^"]*)"`)
