/* The figures of the report, and sums of them. */

const CATEGORIES = ["python", "simulator", "backend", "cuda_api", "native", "unknown"];
const CATEGORY_NAMES = {python: "Python", simulator: "Simulator", backend: "ML backend", cuda_api: "CUDA API",
	native: "Native code", unknown: "Unknown"};

const model = JSON.parse(byId("model").textContent);
const overview = JSON.parse(byId("overview").textContent);

/* How figures came about, from best to worst. */
const METHODS = ["traced", "sampled", "scaled"];

/* What the reader chose to see. */
const view = {corrected: false, pid: null, query: "", by: "operation", shares: false};

const processNames = new Map(model.processes.map((process) => [process.pid, process.name || "process"]));
const processPlaces = new Map(model.processes.map((process) => [process.pid, placeOfProcess(process)]));
const threadNames = new Map(model.threads.map((thread) => [thread.tid, thread.name]));

/* Where several hosts are shown, a pid alone does not tell. */
function placeOfProcess(process) {
	return (process.host_pid || process.pid) + (model.hosts ? " on host " + ((process.host || 0) + 1) : "");
}

function nameOfProcess(pid) {
	return (processNames.get(pid) || "process") + " (" + (processPlaces.get(pid) || pid) + ")";
}

function nameOfThread(pid, tid) {
	const name = threadNames.get(tid) || processNames.get(pid) || "thread";

	return tid ? name + " (" + tid + ")" : "all threads of " + nameOfProcess(pid);
}

function nameOfOperation(operation) {
	return operation === null ? "(several operations)" : operation || "(no operation)";
}

function nameOfPhase(phase) {
	return phase || "(no phase)";
}

/* What of a row's error is the question which category its time is of. */
function splitError(row) {
	const whole = Math.max(row.error_ns - (row.error_divided_ns || 0), 0);
	const rest = Math.min((row.error_shared_ns || 0) + Math.max(row.error_moved_ns || 0, 0), whole);

	return Math.sqrt(Math.max(whole * whole - rest * rest, 0));
}

/* One (category, resource) of a sum. */
class Part {
	constructor(category, resource) {
		Object.assign(this, {category, resource, wall: 0, corrected: 0, shared: 0, moved: 0, split: 0, divided: 0, onCpu: 0, method: 0});
	}

	add(row) {
		this.wall += row.wall_ns;
		this.corrected += row.corrected_ns;
		this.shared += row.error_shared_ns || 0;
		this.moved += row.error_moved_ns || 0;
		this.divided += row.error_divided_ns || 0;
		this.split = Math.hypot(this.split, splitError(row));
		this.onCpu += row.on_cpu_ns;
		this.method = Math.max(this.method, METHODS.indexOf(row.method));
	}

	get time() {
		return view.corrected ? this.corrected : this.wall;
	}

	/* Of one category, so its split does not cancel. */
	get error() {
		return Math.min(Math.hypot(this.shared + Math.max(this.moved, 0), this.split), this.wall) + this.divided;
	}
}

/* A sum of breakdown rows. What the GPU did without any thread is kept apart: it is nobody's time. */
class Sum {
	constructor(name) {
		this.name = name;
		this.parts = new Map();
	}

	add(row) {
		const key = row.category + " " + row.resource;

		if (!this.parts.has(key))
			this.parts.set(key, new Part(row.category, row.resource));
		this.parts.get(key).add(row);
	}

	of(what, test) {
		let sum = 0;

		for (const part of this.parts.values()) {
			if (test ? test(part) : part.resource !== "gpu")
				sum += part[what];
		}
		return sum;
	}

	get time() {
		return this.of("time");
	}

	/* Half the width of the 95 % interval. Over all categories their split cancels, and over a thread what
	 * hits of some rows cost others. */
	get error() {
		const rest = this.of("shared") + Math.max(this.of("moved"), 0);

		return Math.min(this.category ? Math.hypot(rest, this.of("split")) : rest, this.of("wall")) + this.of("divided");
	}

	get gpuAlone() {
		return this.of("time", (part) => part.resource === "gpu");
	}

	get method() {
		return METHODS[Math.max(0, ...[...this.parts.values()].map((part) => part.method))];
	}

	get withGpu() {
		return this.of("time", (part) => part.resource === "cpu+gpu");
	}

	/* In the order they are drawn: by category, first without and then with the GPU. */
	get pieces() {
		const pieces = [];

		for (const category of CATEGORIES)
			pieces.push(this.parts.get(category + " cpu"), this.parts.get(category + " cpu+gpu"));
		pieces.push(this.parts.get(" gpu"));
		return pieces.filter((part) => part && part.time > 0);
	}

	/* The same, a sum for each category. */
	get byCategory() {
		return CATEGORIES.map((category) => {
			const sum = new Sum(CATEGORY_NAMES[category]);

			sum.category = category;
			for (const [key, part] of this.parts) {
				if (part.category === category && part.resource !== "gpu")
					sum.parts.set(key, part);
			}
			return sum;
		}).filter((sum) => sum.parts.size).sort((a, b) => b.time - a.time);
	}
}

const GROUPS = {
	operation: {title: "Operation", key: (row) => row.operation, name: (row) => nameOfOperation(row.operation)},
	phase: {title: "Phase", key: (row) => row.phase, name: (row) => nameOfPhase(row.phase)},
	thread: {title: "Thread", key: (row) => row.pid + " " + row.tid, name: (row) => nameOfThread(row.pid, row.tid)},
	process: {title: "Process", key: (row) => row.pid, name: (row) => nameOfProcess(row.pid)},
};

function shownRows(rows) {
	return view.pid === null ? rows : rows.filter((row) => row.pid === view.pid);
}

/* Sums of rows by a group of GROUPS, in no order. */
function sumsBy(rows, group) {
	const sums = new Map();

	for (const row of rows) {
		const key = group.key(row);

		if (!sums.has(key))
			sums.set(key, Object.assign(new Sum(group.name(row)), {row}));
		sums.get(key).add(row);
	}
	return [...sums.values()];
}

function totalOf(rows) {
	const total = new Sum("total");

	for (const row of rows)
		total.add(row);
	return total;
}

function matches(...names) {
	return !view.query || names.some((name) => String(name).toLowerCase().includes(view.query));
}
