package privacy

import (
	"slices"
	"strings"
)

// Kind is the kind of names of a table.
type Kind int

// The kinds. Each has a table, and a directory of a place in which the operator adds to it.
const (
	Secret    Kind = iota // holds secrets: restricted.d
	Automatic             // runs by itself, or another program runs it: automatic.d
	Identity              // is read by agents as instructions: identity.d
)

// kinds are the directory of each kind, its table, and the reason of the operator's rules.
var kinds = [...]struct {
	dir   string
	table []name
	why   string
}{
	{restricted, builtin[:], operatorWhy},
	{"automatic.d", automatic[:], automaticWhy},
	{"identity.d", identity[:], "agents follow it, by a rule of the operator"},
}

// automaticWhy is the reason of the operator's rules for automatic names.
const automaticWhy = "it runs by itself, by a rule of the operator"

// Reasons of several rows of automatic, or that [Danger] ranks.
const (
	rights   = "it gives the rights of other users"
	preload  = "every program runs what it names"
	ours     = "spectrum takes its defaults from it"
	device   = "the device manager runs what it names"
	login    = "a login runs commands that it names"
	atLogin  = "a login runs it"
	ssh      = "SSH runs commands that it names"
	desktop  = "a desktop runs what it says"
	direnv   = "direnv runs it when the directory is entered"
	gitHook  = "Git runs it, or what it names"
	pipeline = "a build service runs what it says"
	build    = "a build runs what it says"
	python   = "Python runs it at start, or when it installs or tests"
	editor   = "an editor runs what it says when the directory is opened"
	shell    = "a shell runs it at start"
	unit     = "a service manager runs what it says"
	schedule = "cron runs what it says"
	agent    = "an agent runs the commands that it names"
)

// dangers are the reasons of automatic, the most dangerous first: files that run with the rights of root, then
// files that run without a command of the user, then files that a command of the user runs.
var dangers = [...]string{
	automaticWhy, rights, preload, ours, unit, device, schedule, login, atLogin, ssh, shell, desktop, gitHook, agent, editor, direnv, python, pipeline, build,
}

// Danger ranks the reason why a file runs by itself, from [Rules.Match] or at the end of a longer text: the
// lower, the more dangerous.
func Danger(why string) int {
	if at := slices.IndexFunc(dangers[:], func(known string) bool { return strings.HasSuffix(why, known) }); at >= 0 {
		return at
	}
	return len(dangers)
}

// automatic is the table of names that run by themselves.
var automatic = [...]name{
	{"**/.git/hooks/", gitHook, nil},
	{"**/.git/config", gitHook, nil},
	{".gitconfig", gitHook, nil},
	{".gitattributes", gitHook, nil},
	{".gitmodules", gitHook, nil},
	{"**/.githooks/", gitHook, nil},
	{"**/.husky/", gitHook, nil},
	{".pre-commit-config.yaml", gitHook, nil},
	{"lefthook.yml", gitHook, nil},

	{"**/.github/workflows/", pipeline, nil},
	{"**/.github/actions/", pipeline, nil},
	{".gitlab-ci.yml", pipeline, nil},
	{"**/.circleci/config.yml", pipeline, nil},
	{"azure-pipelines.yml", pipeline, nil},
	{"jenkinsfile", pipeline, nil},
	{"**/.gitea/workflows/", pipeline, nil},
	{"**/.forgejo/workflows/", pipeline, nil},
	{".travis.yml", pipeline, nil},
	{"bitbucket-pipelines.yml", pipeline, nil},
	{".drone.yml", pipeline, nil},
	{"**/.woodpecker/", pipeline, nil},
	{"**/.buildkite/", pipeline, nil},

	{"makefile", build, nil},
	{"gnumakefile", build, nil},
	{"*.mk", build, nil},
	{"justfile", build, nil},
	{"package.json", "a package manager runs its scripts", nil},
	{".npmrc", "a package manager runs what it names", nil},
	{"build.rs", build, nil},
	{"**/.cargo/config.toml", build, nil},
	{"**/.cargo/config", build, nil},
	{"build.gradle", build, nil},
	{"build.gradle.kts", build, nil},
	{"rakefile", build, nil},
	{"cmakelists.txt", build, nil},
	{"dockerfile", build, nil},
	{"meson.build", build, nil},
	{"vagrantfile", build, nil},
	{"pkgbuild", build, nil},
	{"composer.json", "a package manager runs its scripts", nil},
	{".pnpmfile.cjs", "a package manager runs it", nil},

	{"setup.py", python, nil},
	{"conftest.py", python, nil},
	{"noxfile.py", python, nil},
	{"tox.ini", python, nil},
	{"pyproject.toml", python, nil},
	{"sitecustomize.py", python, nil},
	{"usercustomize.py", python, nil},
	{"*.pth", python, nil},

	{"**/.vscode/tasks.json", editor, nil},
	{"**/.vscode/settings.json", editor, nil},
	{"**/.vscode/launch.json", editor, nil},
	{"**/.idea/", editor, nil},
	{"**/.devcontainer/", editor, nil},
	{".vimrc", editor, nil},
	{".exrc", editor, nil},
	{".dir-locals.el", editor, nil},
	{".emacs", editor, nil},
	{"**/.emacs.d/", editor, nil},
	{"**/nvim/init.lua", editor, nil},
	{"**/nvim/init.vim", editor, nil},
	{".gdbinit", "a debugger runs it", nil},
	{".lldbinit", "a debugger runs it", nil},
	{".mcp.json", agent, nil},
	{"**/mcp.json", agent, nil},
	{"**/.claude/", agent, nil},
	{"**/.codex/", agent, nil},
	{"**/.gemini/", agent, nil},

	{".envrc", direnv, nil},
	{".bashrc", shell, nil},
	{".bash_profile", shell, nil},
	{".bash_login", shell, nil},
	{".bash_logout", shell, nil},
	{".bash_aliases", shell, nil},
	{".profile", shell, nil},
	{".zshrc", shell, nil},
	{".zshenv", shell, nil},
	{".zprofile", shell, nil},
	{".zlogin", shell, nil},
	{".zlogout", shell, nil},
	{".kshrc", shell, nil},
	{".cshrc", shell, nil},
	{".tcshrc", shell, nil},
	{".xprofile", shell, nil},
	{".xsession", shell, nil},
	{".xsessionrc", shell, nil},
	{".xinitrc", shell, nil},
	{".rprofile", "R runs it at start", nil},
	{".tmux.conf", "tmux runs what it names", nil},
	{"**/fish/config.fish", shell, nil},
	{"**/fish/conf.d/", shell, nil},
	{"**/etc/profile", shell, nil},
	{"**/etc/profile.d/", shell, nil},
	{"**/etc/bash.bashrc", shell, nil},

	{"sudoers", rights, nil},
	{"**/sudoers.d/", rights, nil},
	{"ld.so.preload", preload, nil},
	{"**/spectrum/config.toml", ours, nil},

	{"*.service", unit, nil},
	{"*.timer", unit, nil},
	{"*.socket", unit, nil},
	{"**/init.d/", unit, nil},
	{"**/udev/rules.d/", device, nil},
	{"rc.local", unit, nil},
	{"*.desktop", desktop, nil},
	{"**/autostart/", desktop, nil},
	{"authorized_keys", login, nil},
	{"**/.ssh/rc", atLogin, nil},
	{"**/.ssh/config", ssh, nil},

	{"crontab", schedule, nil},
	{"*.crontab", schedule, nil},
	{"anacrontab", schedule, nil},
	{"**/cron.d/", schedule, nil},
	{"**/cron.hourly/", schedule, nil},
	{"**/cron.daily/", schedule, nil},
	{"**/cron.weekly/", schedule, nil},
	{"**/cron.monthly/", schedule, nil},
	{"**/spool/cron/", schedule, nil},
}

const followed = "agents follow it, so it may be identity layer"

// identity is the table of names that agents read as instructions.
var identity = [...]name{
	{"claude.md", followed, nil},
	{"claude.local.md", followed, nil},
	{"**/.claude/", followed, nil},
	{"agents.md", followed, nil},
	{"agent.md", followed, nil},
	{"gemini.md", followed, nil},
	{"qwen.md", followed, nil},
	{"system_prompt*", followed, nil},
	{"system-prompt*", followed, nil},
	{".cursorrules", followed, nil},
	{"**/.cursor/rules/", followed, nil},
	{".windsurfrules", followed, nil},
	{".clinerules", followed, nil},
	{"**/.clinerules/", followed, nil},
	{".roorules", followed, nil},
	{".goosehints", followed, nil},
	{"**/.aider.conf.yml", followed, nil},
	{"copilot-instructions.md", followed, nil},
	{"*.instructions.md", followed, nil},
	{"*.prompt.md", followed, nil},
}
