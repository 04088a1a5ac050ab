/* The page as a whole: its head, what the reader chooses, and the sections in their order. */

const SECTIONS = [where, timeline, phases, transitions, processes, gpus, lines, memory, cost, recording];

function refresh() {
	SECTIONS.forEach((section) => section.update());
	byId("matches").textContent = view.query ? "Lines with “" + byId("query").value.trim() + "” are shown" : "";
}

/* --- head ----------------------------------------------------------------------------------- */

function showHead() {
	const first = model.processes[0], more = model.processes.length - 1;
	const command = first ? first.cmdline.slice(1).join(" ") || first.name : "";

	byId("title").textContent = first ? (command || "process " + placeOfProcess(first)) + (more ? " and " + more + " more" : "") : "Nothing was recorded";
	byId("facts").append(element("b", {}, formatNs(model.duration_ns)), " recorded, ",
		model.complete ? element("span", {class: "whole"}, "complete") : element("span", {class: "cut"}, "incomplete"),
		first ? " · " + first.name + " (pid " + placeOfProcess(first) + (first.ns_pid ? ", in its namespace " + first.ns_pid : "") + ")" : "",
		first && first.python ? " · Python " + first.python : "",
		model.host.cpus ? " · " + model.host.cpus + " CPUs" : "", model.host.kernel ? " · Linux " + model.host.kernel : "");
	byId("tool").textContent = model.tool;
}

function showNotices() {
	const lost = model.losses.filter((loss) => loss.dropped).map((loss) => formatCount(loss.dropped) + " events of buffer " + loss.buffer + " were lost while recording");
	const texts = [...lost, ...model.warnings];

	if (!model.complete)
		texts.unshift("The recording is incomplete: the figures cover only what could be read.");
	byId("notices").hidden = !texts.length;
	byId("notice-list").append(...texts.map((text) => element("li", {}, text)));
}

function counted(count, one, many = one + "s") {
	return formatCount(count) + " " + (count === 1 ? one : many);
}

function tile(what, much, more) {
	return element("div", {class: "tile"}, element("div", {class: "what"}, what), element("div", {class: much.length > 11 ? "much long" : "much", title: much}, much),
		element("div", {class: "more"}, more));
}

function showTiles() {
	const total = totalOf(model.breakdown), operations = sumsBy(model.breakdown, GROUPS.operation).sort((a, b) => b.time - a.time);
	const named = operations.find((sum) => sum.row.operation), busy = model.gpu.reduce((most, gpu) => Math.max(most, truePercent(gpu)), 0);
	const tiles = [tile("Threads’ time", formatNs(total.of("wall")), counted(model.threads.length, "thread") + ", " + counted(model.processes.length, "process", "processes")),
		tile("On a CPU", formatShare(total.of("onCpu"), total.of("wall")), "of that time")];

	if (total.byCategory.length)
		tiles.push(tile("Largest category", total.byCategory[0].name, formatShare(total.byCategory[0].time, total.time)));
	if (named)
		tiles.push(tile("Largest operation", named.name, formatShare(named.time, total.time)));
	if (model.gpu.length)
		tiles.push(tile("GPU truly busy", formatPercent(busy), "smi-style " + formatPercent(Math.max(...model.gpu.map((gpu) => gpu.smi_style_percent)))));
	tiles.push(tile("Profiler’s cost", formatPercent(model.overhead.percent), formatNs(model.overhead.estimated_ns) + ", " + formatCount(model.overhead.hits) + " hits"));
	byId("tiles").replaceChildren(...tiles);
}

/* --- choices --------------------------------------------------------------------------------- */

function setUpProcesses() {
	const select = byId("process");

	select.append(element("option", {value: ""}, "All"), ...processTree().map(({process, depth}) =>
		element("option", {value: process.pid}, "\u2003".repeat(depth) + nameOfProcess(process.pid))));
	byId("process-field").hidden = model.processes.length < 2;
	select.addEventListener("change", () => {
		view.pid = select.value ? Number(select.value) : null;
		refresh();
	});
}

function setUpGroups() {
	const distinct = (group) => new Set(model.breakdown.map(group.key)).size;
	const usual = ["operation", "phase", "thread", "process"].find((name) => distinct(GROUPS[name]) > 1);

	view.by = usual || "operation";
	byId("by").append(...Object.entries(GROUPS).map(([name, group]) => element("label", {},
		element("input", {type: "radio", name: "by", value: name, checked: name === view.by, onchange: () => {
			view.by = name;
			where.update();
		}}), element("span", {}, group.title))));
}

function setCorrected(corrected) {
	view.corrected = corrected;
	byId("measure").querySelector(corrected ? "[value=corrected]" : "[value=raw]").checked = true;
	refresh();
}

function setUpSearch() {
	let waiting = 0;

	byId("query").addEventListener("input", () => {
		clearTimeout(waiting);
		waiting = setTimeout(() => {
			view.query = byId("query").value.trim().toLowerCase();
			refresh();
		}, model.breakdown.length > 5000 ? 250 : 60);
	});
}

function setUpKeys() {
	document.addEventListener("keydown", (event) => {
		if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input[type=search], select"))
			return;
		if (event.key === "/") {
			event.preventDefault();
			byId("query").focus();
		} else if (event.key === "c") {
			setCorrected(!view.corrected);
		}
	});
}

function setUpTheme() {
	byId("theme").addEventListener("change", () => {
		document.documentElement.dataset.theme = byId("theme").value;
		timeline.draw();
	});
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => timeline.draw());
	/* Paper is light. */
	addEventListener("beforeprint", () => {
		document.documentElement.dataset.theme = "light";
		timeline.draw();
	});
	addEventListener("afterprint", () => {
		document.documentElement.dataset.theme = byId("theme").value;
		timeline.draw();
	});
}

function saveFigures() {
	const address = URL.createObjectURL(new Blob([byId("model").textContent], {type: "application/json"}));

	element("a", {href: address, download: "rlscope.json"}).click();
	setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function start() {
	showHead();
	showNotices();
	showTiles();
	setUpProcesses();
	setUpGroups();
	byId("controls").addEventListener("submit", (event) => event.preventDefault());
	byId("measure").addEventListener("change", (event) => setCorrected(event.target.value === "corrected"));
	byId("scale").addEventListener("change", (event) => {
		view.shares = event.target.value === "shares";
		where.update();
		phases.update();
	});
	byId("save").addEventListener("click", saveFigures);
	setUpSearch();
	setUpKeys();
	followTips();
	SECTIONS.forEach((section) => section.set_up());
	setUpTheme();
	refresh();
	document.documentElement.dataset.ready = "yes";
}

try {
	start();
} catch (error) {
	byId("failure").textContent = "This page could not show its figures: " + error.message;
	byId("failure").hidden = false;
	throw error;
}
