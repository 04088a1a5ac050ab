/* The page of a comparison: grouped bars by operation and side, and the rows as tables. */

const model = JSON.parse(byId("model").textContent);
const CATEGORIES = ["python", "simulator", "backend", "cuda_api", "native", "unknown"];

function nameOf(operation) {
	return operation || "(no operation)";
}

function letterOf(side) {
	return side < 26 ? String.fromCharCode(65 + side) : "side " + side;
}

function tracesOf(side) {
	return model.traces.filter((trace) => trace.side === side);
}

function formatChange(percent) {
	return percent === null ? "–" : (percent >= 0 ? "+" : "−") + Math.abs(percent).toFixed(1) + " %";
}

/* operation -> {per, sides: [{category: value}]}, of all comparisons. */
function groupRows() {
	const groups = new Map();

	for (const comparison of model.comparisons) {
		for (const row of comparison.rows) {
			const key = JSON.stringify([row.operation, row.per]);

			if (!groups.has(key))
				groups.set(key, {operation: row.operation, per: row.per, sides: new Map()});
			for (const [side, value] of [[comparison.a, row.a], [comparison.b, row.b]]) {
				const sides = groups.get(key).sides;

				if (value) {
					if (!sides.has(side))
						sides.set(side, new Map());
					sides.get(side).set(row.category, value);
				}
			}
		}
	}
	return [...groups.values()].filter((group) => group.sides.size);
}

/* A group's bars show shares of its own longest: operations differ by orders of magnitude. */
function drawGroup(group) {
	const sides = [...group.sides.entries()].sort((a, b) => a[0] - b[0]);
	const pieces = sides.map(([side, values]) => CATEGORIES.filter((category) => values.has(category)).map((category) => ({
		size: values.get(category).ns, kind: category,
		tip: letterOf(side) + " · " + category + "\n" + formatNs(values.get(category).ns) + " per " + group.per,
		data: {"data-side": side, "data-category": category, "data-ns": values.get(category).ns}})));
	const sums = pieces.map((list) => list.reduce((sum, piece) => sum + piece.size, 0));
	const errors = sides.map(([, values]) => (values.get("total") || {}).error_ns || 0);
	const full = Math.max(...sums.map((sum, i) => sum + errors[i]), 1e-9);

	return element("section", {class: "pair", "data-operation": group.operation},
		element("h3", {}, nameOf(group.operation), " ", element("span", {class: "muted"}, "per " + group.per)),
		sides.map(([side], i) => element("div", {class: "pair-line"},
			element("b", {}, letterOf(side)),
			bar(pieces[i], full, {error: errors[i], track: true,
				label: nameOf(group.operation) + ", " + letterOf(side) + ": " + formatNs(sums[i])}),
			element("span", {class: "pair-time"}, formatNs(sums[i])))));
}

function weightOf(group) {
	return Math.max(...[...group.sides.values()].map((values) => (values.get("total") || {share: 0}).share));
}

function showGroups() {
	const groups = groupRows().sort((a, b) => weightOf(b) - weightOf(a));
	const used = new Set(groups.flatMap((group) => [...group.sides.values()].flatMap((values) => [...values.keys()])));

	byId("groups").append(...groups.slice(0, 60).map(drawGroup));
	if (groups.length > 60)
		byId("groups").append(element("p", {class: "note"}, groups.length - 60 + " more are in the table below."));
	byId("legend").append(...CATEGORIES.filter((category) => used.has(category)).map((category) =>
		element("li", {}, dot(category), category)));
}

function describe(comparison) {
	const against = comparison.judged === "relative";
	const found = comparison.rows.filter((row) => row.significant).length;
	const verdict = found ? found + (found > 1 ? " rows differ" : " row differs") + " significantly." : "No significant difference.";

	if (comparison.speed === null)
		return verdict + " Too few figures to tell whether something slowed down or everything.";
	return verdict + " Common to all rows: " + formatChange(100 * (comparison.speed - 1)) + " ± " +
		(comparison.speed * comparison.speed_error_percent).toFixed(1) + " % from A to " + letterOf(comparison.b) +
		(against ? ", by the machine or by all of the program; changes are judged against that." : ".");
}

function drawRow(row, against) {
	const cells = [nameOf(row.operation), row.category, row.a ? formatNs(row.a.ns) : "–", row.b ? formatNs(row.b.ns) : "–",
		formatChange(row.change_percent)];

	if (against)
		cells.push(formatChange(row.relative_percent));
	cells.push(row.error_percent === null ? "unknown" : "± " + row.error_percent.toFixed(1) + " %", row.significant ? "differs" : "");
	return element("tr", {class: row.significant ? "differs" : null},
		cells.map((text, i) => element("td", {class: i > 1 && i < cells.length - 1 ? "number" : null}, text)));
}

function drawComparison(comparison) {
	const against = comparison.judged === "relative";
	const heads = ["Operation", "Category", "A", letterOf(comparison.b), "Change", ...against ? ["Against all"] : [], "Error", ""];

	return element("section", {class: "card"},
		element("h2", {}, letterOf(comparison.b) + " beside A"),
		element("p", {class: "note verdict"}, describe(comparison)),
		element("div", {class: "scroll"}, element("table", {class: "compared"},
			element("thead", {}, element("tr", {}, heads.map((text, i) =>
				element("th", {scope: "col", class: i > 1 && i < heads.length - 1 ? "number" : null}, text)))),
			element("tbody", {}, comparison.rows.slice(0, 2000).map((row) => drawRow(row, against))))));
}

function showTraces() {
	const sides = 1 + Math.max(...model.traces.map((trace) => trace.side));
	const warnings = model.traces.flatMap((trace) => [
		...trace.complete ? [] : [trace.trace + " is damaged or incomplete."],
		...trace.left_out ? [trace.trace + ": too many operations and phases, those seen last are left out."] : [],
		...trace.warnings.map((warning) => trace.trace + ": " + warning)]);
	const facts = Array.from({length: sides}, (unused, side) =>
		element("div", {}, element("b", {}, letterOf(side)), " " + tracesOf(side).map((trace) =>
			trace.trace + " (" + formatNs(trace.duration_ns) + ")").join(", ")));

	byId("facts").append(...facts, element("div", {}, "Times: " + model.metric));
	byId("notice-list").append(...warnings.map((text) => element("li", {}, text)));
	byId("notices").hidden = !warnings.length;
}

try {
	showTraces();
	showGroups();
	byId("tables").append(...model.comparisons.map(drawComparison));
	followTips();
} catch (error) {
	byId("failure").textContent = "The page could not be drawn: " + error.message;
	byId("failure").hidden = false;
	throw error;
}
