/* The sections of the report: each makes its table once and updates it when the view changes. */

const recordingStart = overview.start_ns;
const anyGpu = model.breakdown.some((row) => row.resource !== "cpu");

function scaleHead(full) {
	return element("span", {class: "muted"}, "0 – " + formatNs(full));
}

/* Traced is what all is unless it says so. */
function methodBadge(sum) {
	return sum.method === "traced" ? "" : element("span", {class: "badge", title: "from a partial view: the error allows for it"}, sum.method);
}

/* A file's name, with its folder below. */
function showPath(path) {
	const cut = path.lastIndexOf("/") + 1;

	return [path.slice(cut), element("br"), element("span", {class: "muted small"}, path.slice(0, cut))];
}

/* A table of sums with their bars: by operation, phase, thread or process. */
class SumTable {
	constructor(holder, caption, title, children) {
		this.full = 1;
		this.total = 0;
		const columns = [
			{title, value: (sum) => sum.name, show: (sum) => [
				sum.category ? dot(sum.category) : "", sum.category ? " " : "", sum.name, methodBadge(sum)]},
			{title: "", wide: true, show: (sum) => sumBar(sum, this.fullFor(sum))},
			{title: "Time", number: true, value: (sum) => sum.time, show: (sum) => formatNs(sum.time)},
			{title: "Share", number: true, value: (sum) => sum.time, show: (sum) => formatShare(sum.time, this.total)},
			{title: "On CPU", number: true, optional: true, value: (sum) => sum.of("onCpu") / (sum.of("wall") || 1),
				show: (sum) => formatShare(sum.of("onCpu"), sum.of("wall"))},
			{title: "± error", number: true, optional: true, value: (sum) => sum.error,
				show: (sum) => formatNs(sum.error)},
		];

		if (anyGpu)
			columns.splice(5, 0, {title: "With GPU", number: true, optional: true, value: (sum) => sum.withGpu,
				show: (sum) => sum.withGpu ? formatNs(sum.withGpu) : "–"});
		this.table = new SortedTable(holder, {caption, columns, children, sort: {index: 2, down: true}});
	}

	/* One scale for all, or each on its own. */
	fullFor(sum) {
		return view.shares ? Math.max(1, sum.time + sum.gpuAlone) : this.full;
	}

	update(sums, total) {
		this.full = fullOf(sums);
		this.total = total;
		this.table.heads[1].replaceChildren(view.shares ? element("span", {class: "muted"}, "Shares of each") : scaleHead(this.full));
		this.table.update(sums.filter((sum) => matches(sum.name, ...sum.byCategory.map((part) => part.name))));
	}
}

/* --- where the time went ------------------------------------------------------------------- */

function legendItems(total) {
	const items = total.byCategory.map((sum) => element("li", {"data-category": sum.category}, dot(sum.category),
		sum.name, element("b", {}, formatShare(sum.time, total.time)), element("span", {class: "muted"}, formatNs(sum.time))));

	if (total.withGpu)
		items.push(element("li", {}, dot("striped"), "GPU busy meanwhile",
			element("b", {}, formatShare(total.withGpu, total.time)), element("span", {class: "muted"}, formatNs(total.withGpu))));
	if (total.gpuAlone)
		items.push(element("li", {}, dot("gpu"), "GPU alone, no thread traced",
			element("span", {class: "muted"}, formatNs(total.gpuAlone))));
	return items;
}

const where = {
	set_up() {
		this.table = new SumTable(byId("where-table"), "Time by operation and category", "", (sum) => sum.byCategory);
	},

	update() {
		const rows = shownRows(model.breakdown), total = totalOf(rows), group = GROUPS[view.by];

		byId("measured").textContent = view.corrected ? "with the profiler’s own cost taken out; whiskers are what that may be wrong by" : "as recorded";
		byId("total-bar").replaceChildren(bar(piecesOf(total), Math.max(1, total.time + total.gpuAlone),
			{kind: "tall", label: "All: " + describeParts(total.pieces)}));
		byId("legend").replaceChildren(...legendItems(total));
		this.table.table.heads[0].querySelector("button").textContent = group.title;
		this.table.update(sumsBy(rows, group), total.time);
	},
};

/* --- phases --------------------------------------------------------------------------------- */

function operationsOf(phase) {
	const rows = shownRows(model.breakdown).filter((row) => row.phase === phase.row.phase);

	return sumsBy(rows, GROUPS.operation).sort((a, b) => b.time - a.time);
}

const phases = {
	set_up() {
		byId("phases").hidden = !model.breakdown.some((row) => row.phase);
		this.table = new SumTable(byId("phases-table"), "Time by phase and operation", "Phase", operationsOf);
	},

	update() {
		const rows = shownRows(model.breakdown);

		this.table.update(sumsBy(rows, GROUPS.phase), totalOf(rows).time);
	},
};

/* --- transitions ----------------------------------------------------------------------------- */

function transitionSums() {
	const sums = new Map();

	for (const row of shownRows(model.transitions)) {
		const key = JSON.stringify([row.operation, row.from, row.to]);

		if (!sums.has(key))
			sums.set(key, {name: nameOfOperation(row.operation), from: row.from, to: row.to, count: 0,
				error: 0, method: "traced"});
		const sum = sums.get(key);

		sum.count = sum.count === null || row.count === null ? null : sum.count + row.count;
		sum.error += row.count_error;
		sum.method = row.method === "scaled" ? "scaled" : sum.method;
	}
	return [...sums.values()];
}

function secondsShown() {
	const process = model.processes.find((one) => one.pid === view.pid);

	return (process ? process.end_ns - process.start_ns : model.duration_ns) / 1e9;
}

const transitions = {
	set_up() {
		this.most = 1;
		this.table = new SortedTable(byId("transitions-table"), {
			caption: "Transitions between categories by operation", sort: {index: 3, down: true},
			columns: [
				{title: "Operation", value: (row) => row.name, show: (row) => row.name},
				{title: "From → to", value: (row) => row.from + " " + row.to, show: (row) => [
					element("span", {class: "half"}, dot(row.from), " " + CATEGORY_NAMES[row.from], element("span", {class: "arrow"}, "→")),
					element("span", {class: "half"}, dot(row.to), " " + CATEGORY_NAMES[row.to])]},
				{title: "", wide: true, optional: true, show: (row) => bar([{size: row.count || 0, kind: "plain"}], this.most,
					{label: formatEstimate(row.count, row.error, row.method) + " transitions"})},
				{title: "Count", number: true, value: (row) => row.count || 0,
					show: (row) => formatEstimate(row.count, row.error, row.method)},
				{title: "Per second", number: true, value: (row) => row.count || 0,
					show: (row) => secondsShown() > 0 && row.count !== null ?
						(row.method === "scaled" ? "~" : "") + formatCount(row.count / secondsShown()) : "–"},
				{title: "Method", optional: true, value: (row) => row.method, show: (row) => row.method},
			]});
	},

	update() {
		const sums = transitionSums();

		this.most = Math.max(1, ...sums.slice(0, 10000).map((sum) => sum.count || 0));
		this.table.update(sums.filter((sum) => matches(sum.name, CATEGORY_NAMES[sum.from], CATEGORY_NAMES[sum.to])));
	},
};

/* --- processes -------------------------------------------------------------------------------- */

/* Children behind their parent. Parents of a broken trace may run in a circle. */
function processTree() {
	const hosts = new Map(model.processes.map((process) => [process.pid, process.host]));
	const hasParent = (process) => hosts.has(process.ppid) && hosts.get(process.ppid) === process.host;
	const children = new Map();
	const placed = new Set(), order = [];
	const place = (process, depth) => {
		if (placed.has(process))
			return;
		placed.add(process);
		order.push({process, depth});
		if (depth < 20)
			(children.get(process.pid) || []).forEach((child) => place(child, depth + 1));
	};

	for (const process of model.processes.filter(hasParent))
		children.set(process.ppid, [...(children.get(process.ppid) || []), process]);
	model.processes.filter((process) => !hasParent(process)).forEach((process) => place(process, 0));
	model.processes.forEach((process) => place(process, 0));
	return order;
}

function processRows() {
	const sums = new Map(sumsBy(model.breakdown, GROUPS.process).map((sum) => [sum.row.pid, sum]));
	const threads = new Map();

	for (const thread of model.threads)
		threads.set(thread.pid, (threads.get(thread.pid) || 0) + 1);
	return processTree().map(({process, depth}, index) => ({
		index, depth, process, name: nameOfProcess(process.pid), sum: sums.get(process.pid) || new Sum(""),
		threads: threads.get(process.pid) || 0, life: process.end_ns - process.start_ns,
	}));
}

/* The life of a process on the recording's time, cut by what its threads' time went to. */
function lifeBar(row) {
	const scale = row.sum.time > 0 ? row.life / row.sum.time : 0;
	const pieces = piecesOf(row.sum).filter((piece) => piece.kind !== "gpu")
		.map((piece) => ({...piece, size: piece.size * scale}));

	return bar(pieces, Math.max(1, model.duration_ns), {offset: Math.max(0, row.process.start_ns - recordingStart), track: true,
		label: row.name + " lived " + formatNs(row.life) + ": " + describeParts(row.sum.pieces)});
}

const processes = {
	set_up() {
		this.table = new SortedTable(byId("processes-table"), {
			caption: "Process tree", sort: {index: 0, down: false},
			columns: [
				{title: "Process", value: (row) => row.index, show: (row) => [
					row.depth ? element("span", {class: "tree", "aria-hidden": "true"}, "  ".repeat(row.depth - 1) + "└ ") : "",
					row.depth ? element("span", {class: "hidden"}, "level " + (row.depth + 1) + ": ") : "", row.name]},
				{title: "", wide: true, show: lifeBar},
				{title: "Lived", number: true, value: (row) => row.life, show: (row) => formatNs(row.life)},
				{title: "Threads", number: true, value: (row) => row.threads, show: (row) => formatCount(row.threads)},
				{title: "Their time", number: true, value: (row) => row.sum.time, show: (row) => formatNs(row.sum.time)},
				{title: "On CPU", number: true, optional: true, value: (row) => row.sum.of("onCpu") / (row.sum.of("wall") || 1),
					show: (row) => formatShare(row.sum.of("onCpu"), row.sum.of("wall"))},
				{title: "Python", optional: true, value: (row) => row.process.python, show: (row) => row.process.python || "–"},
			]});
		this.table.heads[1].replaceChildren(scaleHead(model.duration_ns));
	},

	update() {
		this.table.update(processRows().filter((row) => matches(row.name, row.process.cmdline.join(" "))));
	},
};

/* --- GPU --------------------------------------------------------------------------------------- */

function truePercent(gpu) {
	const process = model.processes.find((one) => one.pid === gpu.pid);
	const life = process ? process.end_ns - process.start_ns : 0;

	return life > 0 ? 100 * gpu.busy_ns / life : 0;
}

function gpuBars(gpu) {
	const scales = [["true", "gpu", truePercent(gpu), "truly busy"], ["smi", "smi", gpu.smi_style_percent, "nvidia-smi style"]];

	return scales.map(([word, kind, percent, name]) => element("div", {class: "beside"}, element("span", {class: "muted small"}, word),
		bar([{size: percent, kind, tip: name + "\n" + formatPercent(percent)}], 100, {track: true, label: name + " " + formatPercent(percent)})));
}

function launchedRows() {
	return shownRows(model.gpu).flatMap((gpu) => gpu.by_launching_operation.map((launched) => ({
		name: nameOfOperation(launched.operation), phase: launched.phase, device: gpu.device, pid: gpu.pid,
		busy: launched.busy_ns, kernels: launched.kernels})));
}

const gpus = {
	set_up() {
		byId("gpu").hidden = !model.gpu.length;
		this.most = 1;
		this.table = new SortedTable(byId("gpu-table"), {
			caption: "GPU use by process and device", sort: {index: 2, down: true},
			columns: [
				{title: "Device", value: (gpu) => gpu.device, show: (gpu) => ["GPU " + gpu.device, element("br"),
					element("span", {class: "muted"}, nameOfProcess(gpu.pid))]},
				{title: "0 – 100 %", wide: true, show: gpuBars},
				{title: "Truly busy", number: true, value: truePercent, show: (gpu) => [formatPercent(truePercent(gpu)), element("br"),
					element("span", {class: "muted"}, formatNs(gpu.busy_ns))]},
				{title: "smi-style", number: true, value: (gpu) => gpu.smi_style_percent, show: (gpu) => formatPercent(gpu.smi_style_percent)},
				{title: "Kernels", number: true, value: (gpu) => gpu.kernels, show: (gpu) => [formatCount(gpu.kernels), element("br"),
					element("span", {class: "muted"}, formatNs(gpu.kernel_ns))]},
				{title: "Copies", number: true, optional: true, value: (gpu) => gpu.memcpy_ns, show: (gpu) => formatNs(gpu.memcpy_ns)},
			]});
		this.launched = new SortedTable(byId("launched-table"), {
			caption: "GPU time by launching operation", sort: {index: 3, down: true},
			columns: [
				{title: "Operation", value: (row) => row.name, show: (row) => row.name},
				{title: "Phase", optional: true, value: (row) => row.phase, show: (row) => nameOfPhase(row.phase)},
				{title: "", wide: true, show: (row) => bar([{size: row.busy, kind: "gpu"}], this.most, {label: formatNs(row.busy)})},
				{title: "Busy", number: true, value: (row) => row.busy, show: (row) => formatNs(row.busy)},
				{title: "Kernels", number: true, value: (row) => row.kernels, show: (row) => formatCount(row.kernels)},
				{title: "Device", number: true, optional: true, value: (row) => row.device, show: (row) => row.device},
			]});
	},

	update() {
		const launched = launchedRows();

		this.most = Math.max(1, ...launched.slice(0, 10000).map((row) => row.busy));
		this.table.update(shownRows(model.gpu).filter((gpu) => matches(nameOfProcess(gpu.pid))));
		this.launched.update(launched.filter((row) => matches(row.name, row.phase)));
	},
};

/* --- source lines ------------------------------------------------------------------------------- */

const LINE_TIMES = [["python_ns", "python", "Python"], ["native_ns", "backend", "native code"],
	["system_ns", "system", "kernel"], ["waiting_ns", "waiting", "waiting"]];

function lineTime(line) {
	return LINE_TIMES.reduce((sum, [key]) => sum + (line[key] || 0), 0);
}

function lineName(line) {
	return line.file ? line.file + (line.line ? ":" + line.line : "") : "(unknown place)";
}

function lineBar(line, full) {
	const pieces = LINE_TIMES.filter(([key]) => line[key]).map(([key, kind, name]) =>
		({size: line[key], kind, tip: name + "\n" + formatNs(line[key]), data: {"data-ns": line[key]}}));

	return bar(pieces, full, {error: line.error_ns || 0, label: LINE_TIMES.map(([key, , name]) => name + " " + formatNs(line[key] || 0)).join(", ")});
}

/* One array of sampled places: lines, or functions with what is called from them. */
class PlaceTable {
	constructor(holder, caption, first, rows) {
		this.rows = rows;
		this.most = 1;
		const columns = [
			{title: first, value: lineName, show: (line) => showPath(lineName(line))},
			{title: "Function", value: (line) => line.function, show: (line) => [line.function || "–", element("br"),
				element("span", {class: "muted small"}, nameOfOperation(line.operation))]},
			{title: "", wide: true, show: (line) => lineBar(line, this.most)},
			{title: "Own time", number: true, value: lineTime, show: (line) => formatNs(lineTime(line))},
			{title: "± error", number: true, optional: true, value: (line) => line.error_ns, show: (line) => formatNs(line.error_ns || 0)},
			{title: "Samples", number: true, optional: true, value: (line) => line.samples, show: (line) => formatCount(line.samples)},
		];

		if (rows.some((row) => row.total_ns !== undefined))
			columns.splice(4, 0, {title: "With called", number: true, value: (line) => line.total_ns, show: (line) => formatNs(line.total_ns)});
		this.table = new SortedTable(holder, {caption, columns, sort: {index: 3, down: true}, page: 20});
	}

	update() {
		const shown = shownRows(this.rows);

		this.most = Math.max(1, ...shown.slice(0, 10000).map((line) => lineTime(line) + (line.error_ns || 0)));
		this.table.update(shown.filter((line) => matches(line.file, line.function, line.operation)));
	}
}

const lines = {
	set_up() {
		const rows = model.lines || [], functions = model.functions || [];

		byId("lines").hidden = !rows.length && !functions.length;
		byId("line-legend").append(...LINE_TIMES.map(([, kind, name]) => element("li", {}, dot(kind), name)));
		this.tables = [new PlaceTable(byId("lines-table"), "Source lines", "Line", rows),
			new PlaceTable(byId("functions-table"), "Functions", "File", functions)];
	},

	update() {
		this.tables.forEach((table) => table.update());
	},
};

/* --- cost and recording --------------------------------------------------------------------------- */

function pairs(list) {
	return list.filter((pair) => pair[1]).flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)]);
}

const cost = {
	set_up() {
		const overhead = model.overhead, calibration = Object.entries(overhead.calibration);

		byId("cost-pairs").append(...pairs([
			["Estimated cost", formatNs(overhead.estimated_ns) + ", " + formatPercent(overhead.percent) + " of the threads’ time"],
			["Probe hits", formatCount(overhead.hits) + " (silent ones included)"],
			["Calibrated by", {job: "calibrate --pid, in this job", calibrate: "calibrate, on this machine", recording: "a recording, at its start",
				default: "nothing: a default, off by all of it at most"}[overhead.calibration_source]],
			["Events recorded", formatCount(overhead.events)],
			["Events lost", model.losses.some((loss) => loss.dropped) ? "" : "none"]]));
		if (calibration.length)
			new SortedTable(byId("calibration-table"), {caption: "Calibrated costs", columns: [
				{title: "Calibrated on this machine", value: (row) => row[0], show: (row) => row[0]},
				{title: "ns", number: true, value: (row) => row[1].ns, show: (row) => row[1].ns.toFixed(1)},
				{title: "± ns", number: true, value: (row) => row[1].error_ns, show: (row) => row[1].error_ns.toFixed(1)}]}).update(calibration);
		if (model.losses.some((loss) => loss.dropped))
			new SortedTable(byId("losses-table"), {caption: "Events lost while recording", columns: [
				{title: "Buffer", value: (row) => row.buffer, show: (row) => row.buffer},
				{title: "Events lost", number: true, value: (row) => row.dropped, show: (row) => formatCount(row.dropped)}]}).update(model.losses);
	},

	update() {
	},
};

/* A file mapped by several processes is one library; as many of it are probed as anywhere. */
function libraryRows() {
	const rows = new Map();

	for (const process of shownRows(model.processes)) {
		for (const library of process.libraries) {
			const key = library.path + "\0" + library.role, row = rows.get(key) || {...library, pids: []};

			row.sites = Math.max(row.sites, library.sites);
			row.pids.push(process.pid);
			rows.set(key, row);
		}
	}
	return [...rows.values()];
}

const recording = {
	set_up() {
		const host = model.host;

		byId("recording-pairs").append(...pairs([
			["Recorded by", model.tool],
			["Host", [host.kernel && "Linux " + host.kernel, host.cpus && host.cpus + " CPUs"].filter(Boolean).join(", ")],
			["GPUs", host.gpus.map((gpu) => typeof gpu === "string" ? gpu : gpu && gpu.name || JSON.stringify(gpu)).join(", ")],
			["Command", model.processes[0] ? model.processes[0].cmdline.join(" ") : ""]]));
		this.table = new SortedTable(byId("libraries-table"), {
			caption: "Libraries with a role", sort: {index: 2, down: true}, page: 8,
			columns: [
				{title: "Library", value: (row) => row.path, show: (row) => showPath(row.path)},
				{title: "Role", value: (row) => row.role, show: (row) => row.role},
				{title: "Probed functions", number: true, value: (row) => row.sites, show: (row) => formatCount(row.sites)},
				{title: "Processes", number: true, optional: true, value: (row) => row.pids.length,
					show: (row) => row.pids.length === 1 ? nameOfProcess(row.pids[0]) : formatCount(row.pids.length)}]});
	},

	update() {
		this.table.update(libraryRows().filter((row) => matches(row.path, row.role)));
	},
};
