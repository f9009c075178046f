#!/bin/sh
# Reads prices, writes what they did: one table by day, the worst drawdowns, a summary, a chart.
set -eu

window=$(cat "$ROADSTEAD_INPUTS/window")
if [ -n "${ROADSTEAD_ARRAY_INDEX:-}" ]; then
	# shellcheck disable=SC2046 # the windows are words
	set -- $(cat "$ROADSTEAD_INPUTS/windows")
	if [ "$#" -le "$ROADSTEAD_ARRAY_INDEX" ]; then
		echo "there are $# windows, none for the index $ROADSTEAD_ARRAY_INDEX" >&2
		exit 2
	fi
	shift "$ROADSTEAD_ARRAY_INDEX"
	window=$1
fi

echo "0.1 window $window" >>"$ROADSTEAD_PROGRESS"
echo "window of $window returns"
cd "$(dirname "$0")"
awk -f report.awk -v window="$window" -v out="$ROADSTEAD_OUTPUTS" "$ROADSTEAD_INPUTS/prices"

echo "0.8 chart" >>"$ROADSTEAD_PROGRESS"
awk -f chart.awk -v window="$window" "$ROADSTEAD_OUTPUTS/table.csv" >"$ROADSTEAD_OUTPUTS/chart.svg"
echo "1 done" >>"$ROADSTEAD_PROGRESS"
