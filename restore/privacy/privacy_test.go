package privacy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/privacy"
	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

var must = harness.Must

// place makes a place with these files in restricted.d: name to content.
func place(t testing.TB, files map[string]string) string {
	t.Helper()
	top := t.TempDir()
	must(t, os.Mkdir(filepath.Join(top, "restricted.d"), 0o755))
	for name, content := range files {
		must(t, os.WriteFile(filepath.Join(top, "restricted.d", name), []byte(content), 0o644))
	}
	return top
}

func load(t testing.TB, files map[string]string) privacy.Rules {
	t.Helper()
	r, err := privacy.Load(place(t, files))
	must(t, err)
	return r
}

func TestBuiltin(t *testing.T) {
	r := privacy.Builtin()
	for path, want := range map[string]string{
		".env": ".env", "a/b/.ENV": ".env", ".env.local": ".env.*", "a/.env.production": ".env.*",
		"home/.ssh/id_rsa": "id_rsa", "id_ed25519": "id_ed25519", "deploy_rsa": "*_rsa", "Deploy_ED25519": "*_ed25519",
		"etc/ssh/ssh_host_rsa_key": "ssh_host_*_key", "etc/ssh/ssh_host_ed25519_key": "ssh_host_*_key", "x.ppk": "*.ppk",
		"tls/server.pem": "*.pem", "TLS/SERVER.KEY": "*.key", "a.p12": "*.p12", "a.pfx": "*.pfx", "a.jks": "*.jks", "a.keystore": "*.keystore",
		"a.kdbx": "*.kdbx", ".netrc": ".netrc", "_netrc": "_netrc", ".pgpass": ".pgpass", ".my.cnf": ".my.cnf", ".git-credentials": ".git-credentials",
		".npmrc": ".npmrc", "a/.pypirc": ".pypirc", "www/.htpasswd": ".htpasswd", ".aws/credentials": "**/.aws/credentials", "home/u/.aws/credentials": "**/.aws/credentials",
		".docker/config.json": "**/.docker/config.json", ".kube/config": "**/.kube/config", ".config/gcloud/credentials.db": "**/.config/gcloud/credentials.db",
		".config/gcloud/legacy_credentials/me/adc.json": "**/.config/gcloud/legacy_credentials/", "application_default_credentials.json": "application_default_credentials.json",
		".gnupg/secring.gpg": "secring.gpg", ".gnupg/private-keys-v1.d/0A.key": "*.key", ".gnupg/private-keys-v1.d/0A": "**/private-keys-v1.d/", "client.ovpn": "*.ovpn",
		"terraform.tfstate": "*.tfstate", "terraform.tfstate.backup": "*.tfstate.backup", ".vault-token": ".vault-token", "etc/shadow": "shadow", "etc/gshadow": "gshadow",
		"http.keytab": "*.keytab", "wallet.dat": "wallet.dat", "service-account.json": "service-account*.json", "service-account-prod.json": "service-account*.json",
		"config/secrets.yml": "secrets.yml", "secrets.yaml": "secrets.yaml", "secrets.json": "secrets.json", "secrets.toml": "secrets.toml", "credentials.json": "credentials.json",
		".azure/accessTokens.json": "**/.azure/accesstokens.json",
	} {
		f, ok := r.Match(path)
		if !ok || f.Pattern != want || f.Why == "" || f.Operator {
			t.Errorf("%q: %+v, %t, want %s", path, f, ok, want)
		}
	}
	for _, path := range []string{
		"", "a", "README.md", ".env.example", "a/.env.sample", ".ENV.Template", "env", ".environment", ".env/bin/python",
		"id_rsa.pub", "id_ed25519.pub", "deploy_rsa.pub", "ssh_host_rsa_key.pub", "rsa", "key", "pem", "a.pem.txt", "keys.go", "monkey", "a.key/b",
		"credentials", "aws/credentials", ".aws/config", "config.json", "docker/config.json", ".kube/config/x", "config", "shadow.png", "box-shadow", "foreshadow",
		"my-secrets.json", "service.json", "account.json", "terraform.tf", "main.tfvars", "pubring.gpg", "\u212aey.\u212aey", "a.\u212aey",
	} {
		if f, ok := r.Match(path); ok || f != (privacy.Finding{}) {
			t.Errorf("%q: %+v", path, f)
		}
	}
	if f, ok := (privacy.Rules{}).Match(".env"); ok || f != (privacy.Finding{}) {
		t.Error("the zero rules restrict something")
	}
}

func TestLoad(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	empty := t.TempDir()
	for name, test := range map[string]struct {
		places  []string
		yes, no []string // paths
	}{
		"none":         {nil, []string{".env"}, []string{"a.token"}},
		"missing":      {[]string{none, empty}, []string{".env"}, []string{"a.token"}},
		"empty file":   {[]string{place(t, map[string]string{"a": ""})}, []string{".env"}, nil},
		"comments":     {[]string{place(t, map[string]string{"a": "# x\n\n  \n#*.md\n"})}, []string{".env"}, []string{"a.md", "# x"}},
		"hidden":       {[]string{place(t, map[string]string{".a": "*.md"})}, nil, []string{"a.md"}},
		"name":         {[]string{place(t, map[string]string{"a": "*.token"})}, []string{"a.token", "a/b.TOKEN"}, []string{"a.token/x"}},
		"upper case":   {[]string{place(t, map[string]string{"a": "*.Token\n"})}, []string{"a.token", "A.TOKEN"}, nil},
		"directory":    {[]string{place(t, map[string]string{"a": "private/"})}, []string{"private/a", "x/private/a/b"}, []string{"private"}},
		"path":         {[]string{place(t, map[string]string{"a": "deploy/*.yml"})}, []string{"deploy/a.yml"}, []string{"x/deploy/a.yml", "a.yml"}},
		"taken back":   {[]string{place(t, map[string]string{"a": "!*.pem\n!**/.kube/config"})}, []string{"a.key"}, []string{"a.pem", ".kube/config"}},
		"back, in":     {[]string{place(t, map[string]string{"a": "!*.pem\n*.pem"})}, []string{"a.pem"}, nil},
		"in, back":     {[]string{place(t, map[string]string{"a": "*.md\n!*.md"})}, nil, []string{"a.md"}},
		"back twice":   {[]string{place(t, map[string]string{"a": "!*.pem"}), place(t, map[string]string{"a": "!*.pem"})}, nil, []string{"a.pem"}},
		"later file":   {[]string{place(t, map[string]string{"a": "*.md", "b": "!*.MD"})}, nil, []string{"a.md"}},
		"later place":  {[]string{place(t, map[string]string{"z": "!.env"}), place(t, map[string]string{"a": ".env"})}, []string{".env"}, nil},
		"no exception": {[]string{place(t, map[string]string{"a": ".env.*"})}, []string{".env.x", ".env.example"}, nil},
		"back whole":   {[]string{place(t, map[string]string{"a": ".env.*\n!.env.*"})}, []string{".env"}, []string{".env.x", ".env.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := privacy.Load(test.places...)
			must(t, err)
			for _, path := range test.yes {
				if _, ok := r.Match(path); !ok {
					t.Errorf("%q is not restricted", path)
				}
			}
			for _, path := range test.no {
				if f, ok := r.Match(path); ok {
					t.Errorf("%q: %+v", path, f)
				}
			}
		})
	}
}

// TestRestrictedNameIsFound: the table is asked first, and what the operator says is reported
// from it.
func TestRestrictedNameIsFound(t *testing.T) {
	r := load(t, map[string]string{"a": "*.md\nb*.md\n*.pem\n**/a.key\n!*.p12\n*.P12"})
	for path, want := range map[string]privacy.Finding{
		"a.pem": {Pattern: "*.pem"}, "a.key": {Pattern: "*.key"},
		"b.md": {Pattern: "*.md", Operator: true}, "x.p12": {Pattern: "*.p12", Operator: true},
	} {
		f, ok := r.Match(path)
		if why := f.Why; !ok || why == "" {
			t.Errorf("%q: %+v", path, f)
		}
		if f.Why = ""; f != want {
			t.Errorf("%q: %+v, want %+v", path, f, want)
		}
	}
}

// TestNoRules: rules that cannot be parsed, or that another user may have written, are an error
// with the file and the line.
func TestNoRules(t *testing.T) {
	write := func(text string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(dir+"/x", []byte(text), 0o644) }
	}
	for name, test := range map[string]struct {
		make func(dir string) error
		want string // in the error
	}{
		"no pattern":     {write("*.md\na//b\n"), `restricted.d/x": line 2:`},
		"class":          {write("*.[ch]"), "line 1:"},
		"absolute":       {write("\n\n/etc/passwd"), "line 3:"},
		"one slash":      {write("/"), "line 1:"},
		"three stars":    {write("***"), "line 1:"},
		"not UTF-8":      {write("\xff"), "line 1:"},
		"NUL":            {write("a\x00b"), "line 1:"},
		"blank before":   {write(" *.md"), "line 1: white space"},
		"blank behind":   {write("*.md "), "line 1: white space"},
		"blank comment":  {write(" # x"), "line 1: white space"},
		"CRLF":           {write("*.md\r\n"), "line 1: white space"},
		"nothing back":   {write("!"), "line 1:"},
		"unknown back":   {write("!*.pam"), `line 1: pattern "*.pam"`},
		"back too early": {write("!*.c\n*.c"), "line 1:"},
		"exception back": {write("!.env.example"), "line 1:"},
		"twice back":     {write("!!*.pem"), "line 1:"},
		"long pattern":   {write(strings.Repeat("a", 1025)), "line 1:"},
		"large":          {write(strings.Repeat("# comment\n", 7000)), "more than 65536 bytes"},
		"many":           {write(numbered(1001)), "more than 1000 patterns"},
		"open to others": {func(dir string) error { return errors.Join(write("*.md")(dir), os.Chmod(dir+"/x", 0o666)) }, `restricted.d/x": mode 0666`},
		"directory":      {func(dir string) error { return os.Mkdir(dir+"/x", 0o755) }, `restricted.d/x"`},
		"FIFO":           {func(dir string) error { return unix.Mkfifo(dir+"/x", 0o644) }, `restricted.d/x"`},
		"link":           {func(dir string) error { return errors.Join(write("")(dir), os.Symlink("x", dir+"/y")) }, `restricted.d/y"`},
		"open directory": {func(dir string) error { return os.Chmod(dir, 0o777) }, "restricted.d"},
		"open place":     {func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, "mode 0777"},
		"linked directory": {func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"else"), os.Symlink("restricted.delse", dir))
		}, "restricted.d"},
		"no directory": {func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o644)) }, "restricted.d"},
		"no place": {func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Dir(dir)), os.WriteFile(filepath.Dir(dir), nil, 0o644))
		}, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			top := place(t, map[string]string{"a": "*.md"})
			must(t, test.make(filepath.Join(top, "restricted.d")))
			checkNone(t, top, test.want)
		})
	}
	t.Run("foreign", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can give a file away")
		}
		top := place(t, map[string]string{"x": ""})
		must(t, os.Chown(filepath.Join(top, "restricted.d", "x"), 12345, 12345))
		checkNone(t, top, "another user")
	})
}

func checkNone(t *testing.T, top, want string) {
	t.Helper()
	r, err := privacy.Load(top)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if _, ok := r.Match(".env"); ok || r.Digest() != (privacy.Rules{}).Digest() {
		t.Error("there are rules with the error")
	}
}

// numbered are so many patterns.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d\n", i)
	}
	return b.String()
}

// TestDigest: of what is restricted and by whom, whatever the files are called
// and in what order they say it.
func TestDigest(t *testing.T) {
	one := load(t, map[string]string{"a": "*.md\n*.txt"}).Digest()
	for _, files := range []map[string]string{{"b": "*.txt\n# x\n*.MD\n*.md"}, {"x": "*.txt", "y": "**/*.md"}, {"x": "!*.pem\n*.md\n*.txt\n*.c\n!*.c", "y": "*.pem\n!*.pem\n*.md"}} {
		if same := load(t, files).Digest() == one; same != !strings.Contains(files["x"], "!*.pem") {
			t.Errorf("%v: %t", files, same)
		}
	}
	if load(t, nil).Digest() != privacy.Builtin().Digest() {
		t.Error("an empty place changes the digest")
	}
	seen := map[string]string{one: "one"}
	for _, text := range []string{"", "*.md", "*.txt", "*.md*.txt", "*.md/\n", "md/*.txt", "!*.pem", "!*.pem\n*.pem", "!.env.*", ".env.*", "!.env.*\n.env.*", "!secrets.toml\nsecrets.toml"} {
		d := load(t, map[string]string{"a": text}).Digest()
		if before, ok := seen[d]; ok || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(d) {
			t.Errorf("%q and %q: %s", text, before, d)
		}
		seen[d] = text
	}
}

// TestBuiltinIsNotShared: what one operator takes back stays in the table.
func TestBuiltinIsNotShared(t *testing.T) {
	before := privacy.Builtin().Digest()
	load(t, map[string]string{"a": "!.env\n!*.pem\n*.md"})
	if _, ok := privacy.Builtin().Match(".env"); !ok || privacy.Builtin().Digest() != before {
		t.Error("the table has changed")
	}
}

// BenchmarkMatch asks for 20,000 paths of which none is restricted.
func BenchmarkMatch(b *testing.B) {
	r := privacy.Builtin()
	for b.Loop() {
		for i := range 20_000 {
			if f, ok := r.Match(fmt.Sprintf("home/somebody/Project/src/package%d/file_%d.go", i%100, i)); ok {
				b.Fatal(f)
			}
		}
	}
}

func ExampleRules_Match() {
	rules, err := privacy.Load("/nowhere")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"deploy/.ENV", "deploy/.env.example", "home/.ssh/id_ed25519", "src/main.go"} {
		if f, ok := rules.Match(path); ok {
			fmt.Printf("%s: %s\n", path, f.Why)
		}
	}
	// Output:
	// deploy/.ENV: secrets in environment variables
	// home/.ssh/id_ed25519: SSH private key
}

// TestKinds: what runs by itself and what agents follow have tables of their own, to which the
// operator adds; white space and characters that cannot be seen hide no name.
func TestKinds(t *testing.T) {
	for kind, paths := range map[privacy.Kind][]string{
		privacy.Secret: {
			".envrc", "prod.env", "k/kubeconfig", "auth.json", "terraform.tfvars", "key.asc", "secret.txt", "secrets.go",
			".env ", ".e\u200bnv", "a /.env", "id_rsa\u00a0", "\ufeff.netrc", "id_\u00adrsa",
		},
		privacy.Automatic: {
			".git/hooks/pre-commit", "sub/.git/config", ".github/workflows/ci.yml", ".gitlab-ci.yml", "Makefile", "a/package.json", "setup.py", "conftest.py",
			".vscode/tasks.json", ".idea/workspace.xml", ".envrc", ".bashrc", "home/.zshrc", "x.service", "x.desktop", "etc/cron.d/x", "crontab", "Makefile ", ".git\u200b/hooks/x",
		},
		privacy.Identity: {"CLAUDE.md", "sub/claude.md", "AGENTS.md", "system_prompt.txt", "system_prompt", ".cursorrules", "CLAUDE.md ", "CLA\u200bUDE.md"},
	} {
		r := privacy.BuiltinKind(kind)
		for _, path := range paths {
			if _, ok := r.Match(path); !ok {
				t.Errorf("kind %d: %q is none", kind, path)
			}
		}
		for _, path := range []string{"a", "src/main.go", "README.md", "env", "agents", "a b/c", "git/hooks", ""} {
			if found, ok := r.Match(path); ok {
				t.Errorf("kind %d: %q: %+v", kind, path, found)
			}
		}
	}
	for kind, dir := range map[privacy.Kind]string{privacy.Secret: "restricted.d", privacy.Automatic: "automatic.d", privacy.Identity: "identity.d"} {
		top := t.TempDir()
		must(t, os.Chmod(top, 0o700))
		must(t, os.Mkdir(filepath.Join(top, dir), 0o700))
		must(t, os.WriteFile(filepath.Join(top, dir, "mine"), []byte("*.mine\n"), 0o600))
		for other := range privacy.Identity + 1 {
			r, err := privacy.LoadKind(other, top)
			must(t, err)
			if found, ok := r.Match("a.mine"); ok != (other == kind) || ok && !found.Operator {
				t.Errorf("%s: kind %d: %+v, %t", dir, other, found, ok)
			}
		}
	}
}
