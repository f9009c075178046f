#!/bin/sh
# Joins the summaries of a sweep. An array's results come as a folder with a file for each index.
set -eu

cd "$ROADSTEAD_INPUTS/summaries"
# shellcheck disable=SC2046 # the names are numbers
awk 'NR == 1 || FNR > 1' $(printf '%s\n' * | sort -n) >"$ROADSTEAD_OUTPUTS/sweep.csv"
echo "$(($(wc -l <"$ROADSTEAD_OUTPUTS/sweep.csv") - 1)) windows joined"
awk -f "$ROADSTEAD_PACKAGE/join.awk" "$ROADSTEAD_OUTPUTS/sweep.csv" >"$ROADSTEAD_OUTPUTS/sweep.svg"
