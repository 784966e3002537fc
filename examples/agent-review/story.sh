#!/bin/bash
# usage: story.sh SPECTRUM
#
# Plays the story of README.md in a fresh temporary directory: an agent works on a
# repository under "spectrum run", another in a worktree of its own; a person looks at what
# both would change, commits the one, sees that the other has diverged, and takes all of it
# back. Each command is printed with what it answers on a terminal of 80 columns. One that
# ends otherwise than it should ends the story. The state directory is in the temporary
# directory too, and all of it is removed at the end.
#
# Where "spectrum run" cannot isolate a command or no file system can be mounted (exit status
# 69 both), the agent works in a copy of the repository, and the view is left out.
set -uo pipefail

spectrum=$(realpath "${1:?usage: story.sh SPECTRUM}") || exit 64
if [ "${STORY:-}" != on-a-terminal ]; then # programs say less to a pipe
    stage() { STORY=on-a-terminal script -qefc "$(printf '%q ' stty cols 80 rows 24)&& exec $(printf '%q ' "$0" "$spectrum")" /dev/null; }
    stage </dev/null | tr -d '\r'
    exit
fi

here=$(dirname "$(realpath "$0")")
dir=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/spectrum-story.XXXXXX")") || exit 1
cleanup() {
    ! mountpoint -q "$dir/view" || "$spectrum" umount -q "$dir/view"
    cd / && rm -rf --one-file-system "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

export HOME=$dir GIT_CONFIG_NOSYSTEM=1 LC_ALL=C PAGER=cat NO_COLOR=1 TERM=dumb
unset XDG_STATE_HOME SPECTRUM_STATE_DIR SPECTRUM_PROJECT_ROOT SPECTRUM_PAGER XDG_CONFIG_HOME GIT_DIR GIT_WORK_TREE
mkdir "$dir/bin" "$dir/view" && ln -s "$spectrum" "$dir/bin/spectrum" || exit 1
PATH=$dir/bin:$PATH
# What is printed must not depend on how long a step takes.
mkdir -p "$dir/.config/spectrum" && echo 'no-progress = true' >"$dir/.config/spectrum/config.toml" || exit 1

# tell TEXT: describes the next step.
tell() { printf '\n# %s\n' "$*"; }

# step COMMAND [STATUS]: prints a command and runs it. It must end with that exit status, or
# with 0.
step() {
    echo "\$ $1"
    eval "$1"
    local status=$?
    [ $status -eq "${2:-0}" ] || fail "exit status $status, not ${2:-0}: $1"
}

# holds CONDITION: what must be true now.
holds() { eval "$1" || fail "this does not hold: $1"; }

fail() {
    echo "story: $1" >&2
    exit 1
}

# can COMMAND: runs one that ends with 69 where this machine cannot do it.
can() {
    echo "\$ $1"
    eval "$1"
    local status=$?
    [ $status -eq 0 ] || [ $status -eq 69 ] || fail "exit status $status: $1"
    return $status
}

cp -r "$here/project" "$dir/repo" && cp "$here/agent-one" "$here/agent-two" "$dir" && cd "$dir/repo" || exit 1
git init -q -b main && git add -A && git -c user.name=Ada -c user.email=ada@example.org commit -q -m 'total: first version' || exit 1
cp -r . "$dir/before"

tell "A repository. An agent works on it, and nothing of it changes."
step './test.sh'
if ! can 'spectrum run -- ../agent-one'; then
    step 'cp -r . ../one && cd ../one && ../agent-one && cd ../repo'
    step '(cd ../one && spectrum seal --base ../repo)'
fi
step 'git status --short'
holds '[ -z "$(git status --porcelain)" ] && diff -r . ../before'

tell "What the agent wants to change, line by line."
step 'spectrum diff latest' 1

tell "The same as a whole, with who signed it. Nothing is written yet."
step 'id=$(spectrum preview --restore-root $PWD latest)'
holds '[ -z "$(git status --porcelain)" ]'
if can 'spectrum mount --daemon --restore-root $PWD latest ../view'; then
    step 'ls ../view'
    step 'cat ../view/tests/comments.csv'
    step 'spectrum umount ../view'
fi

tell "Approved: all of it is committed, or nothing. The tests are green, the new one too."
step "spectrum commit --preview \$id --approve 'Approved: commit the restore preview exactly as proposed.'"
step './test.sh'
step 'git status --short'
holds '[ -e tests/comments.csv ] && [ ! -e old/notes.txt ] && grep -q "lines that begin with #" total.sh'

tell "Another agent has begun from the same commit, in a worktree of its own."
step 'git worktree add -q ../two HEAD'
step '(cd ../two && ../agent-two)'
step 'two=$(cd ../two && spectrum seal --base-git)'
tell "total.sh is not what that agent has started from: it has diverged, and is not proposed."
step 'spectrum diff --name-status $two $PWD' 1
step 'spectrum preview --restore-root $PWD $two'
holds 'grep -q "^U.total.sh$" <(spectrum diff --name-status $two $PWD 2>/dev/null)'

tell "Three in the morning: back to what was there before, bit for bit."
step 'spectrum rollback latest'
step 'git status --short'
step 'git diff'
holds '[ -z "$(git status --porcelain)" ] && diff -r --exclude=.git . ../before'

echo
echo "story: done. To try it yourself, begin with: bin/spectrum demo /tmp/demo"
