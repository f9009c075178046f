# table.csv -> a chart as SVG: prices, rolling volatility and drawdown, one below the other.

# panel draws the values of one column between top and top + height.
function panel(name, column, top, height, colour, unit, area,    i, low, high, points, x, y, first) {
	first = 1
	for (i = 1; i <= n; i++) if (cell[i, column] != "") {
		if (first || cell[i, column] + 0 < low) low = cell[i, column] + 0
		if (first || cell[i, column] + 0 > high) high = cell[i, column] + 0
		first = 0
	}
	if (high == low) high = low + 1
	for (i = 1; i <= n; i++) if (cell[i, column] != "") {
		x = 70 + 800 * (i - 1) / (n > 1 ? n - 1 : 1); y = top + height * (high - cell[i, column]) / (high - low)
		if (area && points == "") points = sprintf("%.1f,%.1f ", x, top)
		points = points sprintf("%.1f,%.1f ", x, y)
	}
	if (area) points = points sprintf("%.1f,%.1f", x, top)
	printf "<rect x=\"70\" y=\"%d\" width=\"800\" height=\"%d\" fill=\"none\" stroke=\"#ccc\"/>\n", top, height
	printf "<text x=\"70\" y=\"%d\">%s</text>\n", top - 6, name
	printf "<text x=\"64\" y=\"%d\" text-anchor=\"end\">%s</text>\n", top + 10, sprintf(unit, high)
	printf "<text x=\"64\" y=\"%d\" text-anchor=\"end\">%s</text>\n", top + height, sprintf(unit, low)
	printf "<polyline points=\"%s\" fill=\"%s\" stroke=\"%s\" stroke-width=\"1.2\"/>\n", points, area ? colour : "none", colour
}

BEGIN { FS = "," }
NR > 1 {
	n++
	date[n] = $1; cell[n, "price"] = $2; cell[n, "volatility"] = $4 == "" ? "" : 100 * $4; cell[n, "drawdown"] = 100 * $5
}
END {
	print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 520\" font-family=\"sans-serif\" font-size=\"12\">"
	print "<rect width=\"900\" height=\"520\" fill=\"white\"/>"
	panel("price", "price", 30, 200, "#1f4e79", "%.2f", 0)
	panel("volatility of " window " returns, a year", "volatility", 260, 100, "#b35900", "%.1f %%", 0)
	panel("drawdown", "drawdown", 390, 100, "#a61c1c", "%.1f %%", 1)
	printf "<text x=\"70\" y=\"508\">%s</text>\n<text x=\"870\" y=\"508\" text-anchor=\"end\">%s</text>\n</svg>\n", date[1], date[n]
}
