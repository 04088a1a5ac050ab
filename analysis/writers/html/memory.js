/* Memory: what each process uses over time with its peak, and the lines that allocate. */

const LEAK_SCORE = 0.95;
const CHART = {width: 1000, height: 160};

/* Four digits in the unit that fits, as in the text form; null: not known. */
function formatBytes(bytes) {
	if (bytes === null)
		return "–";
	const size = Math.abs(bytes);

	for (const [unit, one] of [["EiB", 2 ** 60], ["PiB", 2 ** 50], ["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
		const value = size / one;

		if (value >= 1)
			return (bytes < 0 ? "-" : "") + value.toFixed(value < 10 ? 3 : value < 100 ? 2 : 1) + " " + unit;
	}
	return Math.round(bytes) + " B";
}

function formatRate(bytes) {
	return bytes === null ? "–" : formatBytes(bytes) + "/s";
}

function nameOfDevice(device) {
	return device < 0 ? "main memory" : "GPU " + device;
}

function pointsOf(use) {
	return model.memory_timeline.filter((point) => point.pid === use.pid && point.device === use.device);
}

/* One curve over another on the time of the recording, and the peak as a dot. */
function memoryChart(use) {
	const points = pointsOf(use), full = Math.max(1, use.rss_peak_bytes, ...points.map((point) => point.live_bytes));
	const x = (time) => CHART.width * Math.max(0, time - recordingStart) / Math.max(1, model.duration_ns);
	const y = (bytes) => CHART.height * (1 - bytes / full);
	const path = (what) => points.filter((point) => point[what] !== null).map((point) => x(point.time_ns).toFixed(1) + "," + y(point[what]).toFixed(1)).join(" ");
	const peak = "peak " + formatBytes(use.rss_peak_bytes) + " after " + formatNs(use.peak_time_ns - recordingStart);

	return drawing("svg", {class: "memory-chart", viewBox: "-6 -6 " + (CHART.width + 12) + " " + (CHART.height + 12), preserveAspectRatio: "none",
		role: "img", "aria-label": nameOfProcess(use.pid) + ", " + nameOfDevice(use.device) + ": " + peak},
	drawing("polyline", {class: "resident", points: path("rss_bytes")}),
	drawing("polyline", {class: "tracked", points: path("live_bytes")}),
	drawing("circle", {class: "peak", cx: x(use.peak_time_ns).toFixed(1), cy: y(use.rss_peak_bytes).toFixed(1), r: 5, "data-tip": peak}));
}

function memoryNote(use) {
	const limit = use.limit_in_s === null ? "" : "; at this rate its limit of " + formatBytes(use.limit_bytes) + " is reached in " + formatNs(1e9 * use.limit_in_s);

	return nameOfProcess(use.pid) + ", " + nameOfDevice(use.device) + ": " + formatBytes(use.rss_start_bytes) + " at first, " +
		formatBytes(use.rss_peak_bytes) + " at the peak, " + formatBytes(use.rss_end_bytes) + " at last; " + formatBytes(use.tracked_growth_bytes) +
		" tracked, " + formatBytes(use.untracked_bytes) + " untracked; growth " + formatRate(use.growth_bytes_per_s) + limit + (use.out_of_memory ? "; out of memory" : "");
}

function memoryPlace(row) {
	return row.file ? row.file + (row.line ? ":" + row.line : "") : "(no Python code)";
}

/* Of what was estimated, how far it may be off. */
function showAllocated(row) {
	return row.method === "counted" ? formatBytes(row.alloc_bytes) : "~" + formatBytes(row.alloc_bytes) + " ± " + formatBytes(row.error_bytes);
}

function showLeak(row) {
	if (row.leak_score === null)
		return "–";
	const score = (Math.floor(100 * row.leak_score) / 100).toFixed(2);

	return row.leak_score >= LEAK_SCORE ? element("b", {class: "leak", title: "this line leaks"}, score) : score;
}

/* Columns of bytes sort what is not known as nothing. */
function bytesColumn(title, key, optional) {
	return {title, number: true, optional, value: (row) => row[key] || 0, show: (row) => formatBytes(row[key])};
}

const memory = {
	set_up() {
		byId("memory").hidden = !model.memory.length && !model.memory_lines.length;
		this.table = new SortedTable(byId("memory-table"), {
			caption: "Lines that allocate", sort: {index: 7, down: true},
			columns: [
				{title: "Line", value: memoryPlace, show: (row) => [...showPath(memoryPlace(row)), element("br"),
					element("span", {class: "muted small"}, row.function + " · " + (row.device < 0 ? row.source : nameOfDevice(row.device)))]},
				{title: "Operation", optional: true, value: (row) => row.operation, show: (row) => nameOfOperation(row.operation)},
				{title: "Allocated", number: true, value: (row) => row.alloc_bytes, show: showAllocated},
				bytesColumn("Temporary", "temporary_bytes", true),
				bytesColumn("At peak", "bytes_at_process_peak", false),
				bytesColumn("Growth", "growth_bytes", false),
				{title: "Per second", number: true, optional: true, value: (row) => row.growth_bytes_per_s || 0, show: (row) => formatRate(row.growth_bytes_per_s)},
				{title: "Leak", number: true, value: (row) => row.leak_score || 0, show: showLeak},
			]});
		byId("copies-holder").hidden = !model.copies.length;
		this.copies = new SortedTable(byId("copies-table"), {
			caption: "Lines that copy", sort: {index: 3, down: true},
			columns: [
				{title: "Line", value: memoryPlace, show: (row) => showPath(memoryPlace(row))},
				{title: "Operation", optional: true, value: (row) => row.operation, show: (row) => nameOfOperation(row.operation)},
				{title: "Direction", value: (row) => row.kind, show: (row) => row.kind},
				{title: "Copied", number: true, value: (row) => row.bytes, show: (row) => formatBytes(row.bytes)},
				{title: "Copies", number: true, value: (row) => row.copies, show: (row) => formatCount(row.copies)},
				{title: "Per second", number: true, value: (row) => row.bytes_per_s, show: (row) => formatRate(row.bytes_per_s)},
			]});
	},

	update() {
		const uses = shownRows(model.memory);
		const named = (row) => matches(memoryPlace(row), row.function, row.operation, row.phase);

		byId("memory-charts").replaceChildren(...uses.slice(0, 40).map((use) => element("div", {class: "memory-use"},
			element("p", {class: "small"}, memoryNote(use)), memoryChart(use))));
		this.table.update(shownRows(model.memory_lines).filter(named));
		this.copies.update(shownRows(model.copies).filter(named));
	},
};
