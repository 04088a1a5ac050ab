/* Stacked bars: rectangles in percent of their column, so that they fit any width. */

function tipOf(part, whole) {
	const name = part.resource === "gpu" ? "GPU alone, no thread traced" : CATEGORY_NAMES[part.category];
	const with_gpu = part.resource === "cpu+gpu" ? ", GPU busy" : "";

	return name + with_gpu + "\n" + formatNs(part.time) + " · " + formatShare(part.time, whole);
}

function describeParts(parts) {
	return parts.map((part) => (CATEGORY_NAMES[part.category] || "GPU alone") +
		(part.resource === "cpu+gpu" ? " with GPU " : " ") + formatNs(part.time)).join(", ");
}

/* pieces: {size, kind, hatched, tip, data}; their sizes and `offset` are on a scale that ends at `full`. */
function bar(pieces, full, {offset = 0, error = 0, label = "", track = false, kind = ""} = {}) {
	const svg = drawing("svg", {class: "bar " + kind, role: "img", "aria-label": label});
	let at = offset;

	if (track)
		svg.append(drawing("rect", {class: "track", x: "0", width: "100%", height: "100%", rx: 3}));
	for (const piece of pieces) {
		const place = {x: 100 * at / full + "%", width: 100 * piece.size / full + "%", height: "100%"};

		svg.append(drawing("rect", {...place, class: piece.kind, "data-tip": piece.tip, ...piece.data}));
		if (piece.hatched)
			svg.append(drawing("rect", {...place, class: "hatched", "data-tip": piece.tip}));
		at += piece.size;
	}
	if (error > 0)
		svg.append(whisker(Math.max(0, at - error) / full, Math.min(full, at + error) / full));
	return svg;
}

function whisker(from, to) {
	const start = 100 * from + "%", end = 100 * to + "%";

	return drawing("g", {class: "whisker"},
		drawing("line", {x1: start, x2: end, y1: "50%", y2: "50%"}),
		drawing("line", {x1: start, x2: start, y1: "28%", y2: "72%"}),
		drawing("line", {x1: end, x2: end, y1: "28%", y2: "72%"}));
}

function piecesOf(sum) {
	const time = sum.time;

	return sum.pieces.map((part) => ({
		size: part.time,
		kind: part.resource === "gpu" ? "gpu" : part.category,
		hatched: part.resource === "cpu+gpu",
		tip: tipOf(part, time),
		data: {"data-category": part.category, "data-resource": part.resource, "data-ns": part.time},
	}));
}

/* A sum as a bar. Its error is drawn where the cost was taken out, for that is what it is of. */
function sumBar(sum, full, options = {}) {
	const error = view.corrected ? sum.error : 0;

	return bar(piecesOf(sum), full, {error, label: sum.name + ": " + describeParts(sum.pieces), ...options});
}

/* The longest of these bars, whiskers included. */
function fullOf(sums) {
	return Math.max(1, ...sums.slice(0, 10000).map((sum) =>
		sum.time + sum.gpuAlone + (view.corrected ? sum.error : 0)));
}

function dot(kind) {
	return element("span", {class: "dot " + kind, "aria-hidden": "true"});
}
