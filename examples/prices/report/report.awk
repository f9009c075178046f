# Prices (date, price) -> table.csv, drawdowns.csv, summary.csv in the folder out.
#
# return      price over the price before, less 1
# volatility  sample standard deviation of the last window log returns, for a year of 252 days
# drawdown    price over the highest price so far, less 1

function refuse(why) {
	printf "prices, line %d: %s\n", NR, why > "/dev/stderr"
	failed = 1
	exit 1
}

# spread is the yearly volatility of the n log returns up to the one with the number last.
function spread(last, n,    i, mean, squares) {
	for (i = last - n + 1; i <= last; i++) mean += log_return[i] / n
	for (i = last - n + 1; i <= last; i++) squares += (log_return[i] - mean) ^ 2
	return sqrt(squares / (n - 1) * 252)
}

# close_fall remembers a fall from a peak that is over, or goes on at the end of the prices (end is empty then).
function close_fall(end) {
	falls++
	from[falls] = date[peak]; low[falls] = date[trough]; to[falls] = end
	depth[falls] = price[trough] / price[peak] - 1; length_of[falls] = trough - peak
}

BEGIN {
	FS = ","
	if (window !~ /^[0-9]+$/ || window + 0 < 2) { print "the window must be a number of returns, 2 at least" > "/dev/stderr"; failed = 2; exit 2 }
	window += 0; n = 0; peak = 0; trough = 0 # an index that was never set is no 0
}

{ sub(/\r$/, "") }
NR == 1 || $0 == "" { next }
{
	if (NF != 2) refuse("there are " NF " columns, not 2")
	if ($1 !~ /^[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]$/) refuse("\"" $1 "\" is no date")
	if ($2 !~ /^[0-9]+(\.[0-9]+)?$/ || $2 + 0 <= 0) refuse("\"" $2 "\" is no price")
	if (n > 0 && $1 <= date[n - 1]) refuse($1 " does not come after " date[n - 1])
	date[n] = $1; price[n] = $2 + 0; n++
}

END {
	if (failed) exit failed
	if (n <= window) { printf "%d prices are too few for a window of %d returns\n", n, window > "/dev/stderr"; exit 1 }
	print "date,price,return,volatility,drawdown" > (out "/table.csv")
	for (i = 0; i < n; i++) {
		line = sprintf("%s,%.4f", date[i], price[i])
		if (i == 0) line = line ","
		else {
			log_return[i] = log(price[i] / price[i - 1])
			line = line sprintf(",%.10f", price[i] / price[i - 1] - 1)
		}
		volatility = ""
		if (i >= window) {
			v = spread(i, window)
			volatility = sprintf("%.10f", v)
			if (i == window || v < calm) calm = v
			if (i == window || v > storm) storm = v
			sum += v
		}
		if (price[i] >= price[peak]) {
			if (trough > peak) close_fall(date[i])
			peak = i; trough = i
		} else if (trough == peak || price[i] < price[trough]) trough = i
		print line "," volatility sprintf(",%.10f", price[i] / price[peak] - 1) > (out "/table.csv")
	}
	if (trough > peak) close_fall("")

	print "peak,trough,recovered,depth,days_down" > (out "/drawdowns.csv")
	for (k = 1; k <= 5 && k <= falls; k++) { # the five deepest
		best = 0
		for (j = 1; j <= falls; j++) if (!taken[j] && (!best || depth[j] < depth[best])) best = j
		taken[best] = 1
		if (k == 1) worst = depth[best]
		printf "%s,%s,%s,%.10f,%d\n", from[best], low[best], to[best], depth[best], length_of[best] > (out "/drawdowns.csv")
	}

	print "window,prices,total_return,volatility,mean_rolling,min_rolling,max_rolling,last_rolling,max_drawdown" > (out "/summary.csv")
	printf "%d,%d,%.10f,%.10f,%.10f,%.10f,%.10f,%.10f,%.10f\n", window, n, price[n - 1] / price[0] - 1, spread(n - 1, n - 1),
		sum / (n - window), calm, storm, v, worst > (out "/summary.csv")
	printf "%d prices, %s to %s: return %.1f %%, volatility %.1f %%, worst drawdown %.1f %%\n", n, date[0], date[n - 1],
		100 * (price[n - 1] / price[0] - 1), 100 * spread(n - 1, n - 1), 100 * worst
}
