# sweep.csv -> a chart as SVG: for each window a bar from the calmest to the stormiest volatility, with a dot at the mean.

BEGIN { FS = "," }
NR > 1 {
	n++
	window[n] = $1; mean[n] = 100 * $5; low[n] = 100 * $6; high[n] = 100 * $7
	if (high[n] > top) top = high[n]
}

function y(value) { return 260 - 220 * value / (top > 0 ? top : 1) }

END {
	print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 600 310\" font-family=\"sans-serif\" font-size=\"12\">"
	print "<rect width=\"600\" height=\"310\" fill=\"white\"/>"
	print "<text x=\"50\" y=\"22\">rolling volatility by window: lowest, mean, highest</text>"
	printf "<line x1=\"50\" y1=\"260\" x2=\"580\" y2=\"260\" stroke=\"#888\"/>\n<text x=\"44\" y=\"44\" text-anchor=\"end\">%.0f %%</text>\n<text x=\"44\" y=\"264\" text-anchor=\"end\">0</text>\n", top
	for (i = 1; i <= n; i++) {
		x = 50 + 530 * (i - 0.5) / n
		printf "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#b35900\" stroke-width=\"8\"/>\n", x, y(low[i]), x, y(high[i])
		printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"#1f4e79\"/>\n<text x=\"%.1f\" y=\"280\" text-anchor=\"middle\">%s</text>\n", x, y(mean[i]), x, window[i]
	}
	print "<text x=\"315\" y=\"300\" text-anchor=\"middle\">returns in the window</text>\n</svg>"
}
