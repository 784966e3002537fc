#!/bin/sh
# usage: total.sh FILE
# Prints the sum of the second column of a file of comma-separated values.
sum=0
while IFS=, read -r _ amount; do
    sum=$((sum + amount))
done <"$1"
echo "$sum"
