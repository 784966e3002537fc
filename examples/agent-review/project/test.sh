#!/bin/sh
# Runs total.sh on each tests/NAME.csv, which must print what tests/NAME.want has.
cd "$(dirname "$0")" || exit 1
failed=0
for file in tests/*.csv; do
    want=${file%.csv}.want
    if [ "$(./total.sh "$file" 2>&1)" = "$(cat "$want")" ]; then
        echo "ok   $file"
    else
        echo "FAIL $file"
        failed=1
    fi
done
exit $failed
