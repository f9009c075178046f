#!/bin/sh
# Writes made-up daily prices as CSV: the same seed gives the same prices on every machine.
# Usage: sh make-prices.sh [SEED [DAYS]] > prices.csv
set -eu
exec awk -v seed="${1:-7}" -v days="${2:-750}" '
# uniform is the minimal standard generator of Park and Miller; its products fit a double exactly.
function uniform() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }
# normal is near enough to a standard normal: the sum of twelve uniforms.
function normal(    i, s) { s = -6; for (i = 0; i < 12; i++) s += uniform(); return s }
# date is a day number, counted from 1970-01-01, as the calendar says it.
function date(n,    era, doe, yoe, doy, mp, d, m, y) {
	n += 719468; era = int(n / 146097); doe = n - era * 146097
	yoe = int((doe - int(doe / 1460) + int(doe / 36524) - int(doe / 146096)) / 365)
	y = yoe + era * 400; doy = doe - (365 * yoe + int(yoe / 4) - int(yoe / 100))
	mp = int((5 * doy + 2) / 153); d = doy - int((153 * mp + 2) / 5) + 1
	m = mp < 10 ? mp + 3 : mp - 9; if (m <= 2) y++
	return sprintf("%04d-%02d-%02d", y, m, d)
}
BEGIN {
	print "date,close"
	price = 100; volatility = 0.01; day = 19725 # 2024-01-03, a Wednesday
	for (i = 0; i < days; i++) {
		printf "%s,%.2f\n", date(day), price
		volatility = 0.01 + 0.9 * (volatility - 0.01) + 0.002 * normal() # calm and stormy times
		if (volatility < 0.004) volatility = 0.004
		price *= exp(0.0003 + volatility * normal())
		do day++; while ((day + 4) % 7 == 0 || (day + 4) % 7 == 6) # no prices at weekends
	}
}'
