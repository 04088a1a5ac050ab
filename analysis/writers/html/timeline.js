/* Threads over time: from the overview's buckets, drawn for the stretch that is looked at. */

const LANES_FIRST = 12;
const RIBBONS = 8;              /* operations with a colour of their own */
const SPAN_LEAST_NS = 1000;

/* Runs as arrays of instants from the recording's start. */
function readLane(thread) {
	const width = 2 ** thread.shift, count = thread.runs.length / 5;
	const lane = {pid: thread.pid, tid: thread.tid, keys: thread.keys, width, count, starts: new Float64Array(count), ends: new Float64Array(count),
		key: new Uint32Array(count), wall: new Float64Array(count), gpu: new Float64Array(count), total: 0};
	let bucket = thread.first;

	for (let i = 0; i < count; i++) {
		const [skip, buckets, key, wall, gpu] = thread.runs.slice(5 * i, 5 * i + 5);

		bucket += skip;
		/* Buckets begin before the recording does, and end after it. */
		lane.starts[i] = Math.max(0, bucket * width - recordingStart);
		lane.ends[i] = Math.max(lane.starts[i] + 1, Math.min(model.duration_ns, (bucket + buckets) * width - recordingStart));
		lane.key[i] = key;
		lane.wall[i] = wall;
		lane.gpu[i] = gpu;
		lane.total += wall;
	}
	return lane;
}

/* The first run that may end after an instant. Runs are sorted by their beginnings. */
function firstRun(lane, from) {
	let low = 0, high = lane.count;

	while (low < high) {
		const middle = (low + high) >> 1;

		if (lane.ends[middle] <= from)
			low = middle + 1;
		else
			high = middle;
	}
	return Math.max(0, low - 64);
}

/* Calls use(run, share of it, from, to) for what of each run is within a stretch. */
function forRuns(lane, from, to, use) {
	for (let i = firstRun(lane, from); i < lane.count && lane.starts[i] < to; i++) {
		const start = Math.max(from, lane.starts[i]), end = Math.min(to, lane.ends[i]);

		if (end > start)
			use(i, (end - start) / (lane.ends[i] - lane.starts[i]), start, end);
	}
}

/* --- one lane -------------------------------------------------------------------------------- */

/* Time by column of pixels and by slot; slot_of(run) says which. */
function columnsOf(lane, columns, slots, slot_of, values) {
	const sums = new Float64Array(columns * slots), {from, to} = timeline, scale = columns / (to - from);

	forRuns(lane, from, to, (run, share, start, end) => {
		const slot = slot_of(run), first = (start - from) * scale, last = (end - from) * scale;
		const density = values[run] / (lane.ends[run] - lane.starts[run]) / scale;

		for (let column = Math.floor(first); column < last && column < columns; column++)
			sums[column * slots + slot] += density * (Math.min(last, column + 1) - Math.max(first, column));
	});
	return sums;
}

function paintCategories(context, lane, columns, height, colours) {
	const per_column = (timeline.to - timeline.from) / columns;
	const sums = columnsOf(lane, columns, CATEGORIES.length, (run) => lane.category[run], lane.wall);

	for (let slot = 0; slot < CATEGORIES.length; slot++) {
		context.fillStyle = colours[slot];
		for (let column = 0; column < columns; column++) {
			let below = 0;

			for (let k = 0; k < slot; k++)
				below += sums[column * CATEGORIES.length + k];
			const from = Math.min(1, below / per_column), part = Math.min(1 - from, sums[column * CATEGORIES.length + slot] / per_column);

			if (part > 0)
				context.fillRect(column, height * (1 - from - part), 1, height * part);
		}
	}
}

/* The operation with the most time of a column, the paler the less it is. */
function paintRibbon(context, lane, columns, top, height, colours) {
	const slots = RIBBONS + 2, sums = columnsOf(lane, columns, slots, (run) => lane.ribbon[run], lane.wall);
	const per_column = (timeline.to - timeline.from) / columns;

	for (let column = 0; column < columns; column++) {
		const named = sums.subarray(column * slots, (column + 1) * slots - 1), most = named.indexOf(Math.max(...named));

		if (named[most] > 0.01 * per_column) {
			context.globalAlpha = Math.min(1, 0.35 + named[most] / per_column);
			context.fillStyle = colours[most];
			context.fillRect(column, top, 1, height);
		}
	}
	context.globalAlpha = 1;
}

function paintGpu(context, lane, columns, height, colour) {
	const per_column = (timeline.to - timeline.from) / columns, sums = columnsOf(lane, columns, 1, () => 0, lane.gpu);

	context.fillStyle = colour;
	for (let column = 0; column < columns; column++) {
		const part = Math.min(1, sums[column] / per_column);

		if (part > 0)
			context.fillRect(column, 0, 1, Math.max(1, height * part));
	}
}

function paintLane(lane, canvas, colours) {
	const scale = Math.min(3, devicePixelRatio || 1), width = Math.round(canvas.clientWidth * scale), height = Math.round(38 * scale);

	if (!width)
		return;
	canvas.width = width;
	canvas.height = height;
	const context = canvas.getContext("2d"), body = Math.round(height * 0.76);

	paintCategories(context, lane, width, body, colours.categories);
	paintGpu(context, lane, width, Math.round(height * 0.16), colours.gpu);
	paintRibbon(context, lane, width, body + 2 * scale, height - body - 2 * scale, colours.operations);
}

/* --- all of them ----------------------------------------------------------------------------- */

function windowSums(lanes) {
	const sums = new Map();

	for (const lane of lanes) {
		forRuns(lane, timeline.from, timeline.to, (run, share) => {
			const [, operation, category] = lane.keys[lane.key[run]], name = nameOfOperation(operation);
			const row = {category, resource: "cpu", wall_ns: lane.wall[run] * share, corrected_ns: lane.wall[run] * share, error_ns: 0, on_cpu_ns: 0};

			if (!sums.has(name))
				sums.set(name, new Sum(name));
			sums.get(name).add(row);
		});
	}
	return [...sums.values()];
}

const timeline = {
	from: 0,
	to: 1,

	set_up() {
		this.whole = Math.max(1, model.duration_ns);
		this.to = this.whole;
		this.lanes = overview.threads.map(readLane).sort((a, b) => b.total - a.total);
		this.most = LANES_FIRST;
		byId("gpu-edge").hidden = !anyGpu;
		this.nameOperations();
		this.table = new SortedTable(byId("window-table"), {caption: "Time within the stretch shown, by operation", sort: {index: 2, down: true}, columns: [
			{title: "In this stretch", value: (sum) => sum.name, show: (sum) => sum.name},
			{title: "", wide: true, show: (sum) => bar(piecesOf(sum), this.full, {label: sum.name + ": " + describeParts(sum.pieces)})},
			{title: "Time", number: true, value: (sum) => sum.time, show: (sum) => formatNs(sum.time)}]});
		this.listen();
		new ResizeObserver(() => this.draw()).observe(byId("lanes"));
	},

	/* The operations with the most time get a colour; the rest share one. */
	nameOperations() {
		const times = new Map();

		for (const lane of this.lanes) {
			for (let run = 0; run < lane.count; run++) {
				const operation = lane.keys[lane.key[run]][1];

				times.set(operation, (times.get(operation) || 0) + lane.wall[run]);
			}
		}
		times.delete("");
		const order = [...times.keys()].sort((a, b) => times.get(b) - times.get(a));
		const ribbons = new Map(order.map((operation, index) => [operation, Math.min(index, RIBBONS)]));

		for (const lane of this.lanes) {
			lane.category = Uint8Array.from(lane.key, (key) => Math.max(0, CATEGORIES.indexOf(lane.keys[key][2])));
			lane.ribbon = Uint8Array.from(lane.key, (key) => ribbons.has(lane.keys[key][1]) ? ribbons.get(lane.keys[key][1]) : RIBBONS + 1);
		}
		const items = order.slice(0, RIBBONS).map((operation, index) => element("li", {},
			element("span", {class: "dot", style: "background: var(--operation-" + index + ")", "aria-hidden": "true"}), nameOfOperation(operation)));

		if (order.length > RIBBONS)
			items.push(element("li", {}, element("span", {class: "dot", style: "background: var(--operation-other)", "aria-hidden": "true"}),
				order.length - RIBBONS + " more operations"));
		byId("operation-legend").replaceChildren(...items);
	},

	shownLanes() {
		return this.lanes.filter((lane) => (view.pid === null || lane.pid === view.pid) && (matches(nameOfThread(lane.pid, lane.tid), nameOfProcess(lane.pid)) ||
			lane.keys.some(([phase, operation]) => matches(phase, nameOfOperation(operation)))));
	},

	update() {
		const lanes = this.shownLanes(), holder = byId("lanes");

		this.drawn = lanes.slice(0, this.most).map((lane) => [lane, element("canvas", {role: "img", "aria-label": nameOfThread(lane.pid, lane.tid)})]);
		this.ticks = element("div", {class: "ticks", "aria-hidden": "true"});
		holder.replaceChildren(element("div", {class: "axis"}, element("span"), this.ticks), ...this.drawn.map(([lane, canvas]) =>
			element("div", {class: "lane"}, element("div", {class: "lane-name", title: nameOfThread(lane.pid, lane.tid)}, nameOfThread(lane.pid, lane.tid), element("br"),
				element("span", {class: "muted"}, formatNs(lane.total))), canvas)));
		if (!lanes.length)
			holder.append(element("p", {class: "empty"}, "No thread to show."));
		if (lanes.length > this.most)
			holder.append(element("button", {type: "button", class: "more-rows", onclick: () => {
				this.most += 50;
				this.update();
			}}, "Show more threads (" + formatCount(lanes.length - this.most) + " left)"));
		this.draw();
	},

	draw() {
		if (!this.drawn)
			return;
		const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue("--" + name).trim();
		const colours = {categories: CATEGORIES.map((name) => colour(name.replace("_", "-"))), gpu: colour("gpu"),
			operations: [...Array(RIBBONS).keys()].map((index) => colour("operation-" + index)).concat(colour("operation-other"))};

		this.drawn.forEach(([lane, canvas]) => paintLane(lane, canvas, colours));
		this.drawTicks();
		this.sumUp();
	},

	drawTicks() {
		const step = roundStep(this.to - this.from, this.ticks.clientWidth > 500 ? 8 : 4), marks = [];

		for (let at = Math.ceil(this.from / step) * step; at < this.to - step / 4; at += step)
			marks.push(element("span", {style: "left: " + 100 * (at - this.from) / (this.to - this.from) + "%"}, at ? formatTick(at, step) : "0"));
		this.ticks.replaceChildren(...marks);
	},

	sumUp() {
		const sums = windowSums(this.drawn.map(([lane]) => lane));

		byId("window").textContent = formatNs(this.from) + " to " + formatNs(this.to) + " of " + formatNs(this.whole) + ", " +
			this.drawn.length + (this.drawn.length === 1 ? " thread" : " threads");
		this.full = Math.max(1, ...sums.map((sum) => sum.time));
		this.table.rows = sums;
		this.table.draw();
	},

	zoomTo(from, to) {
		const span = Math.min(this.whole, Math.max(SPAN_LEAST_NS, to - from));

		this.from = Math.max(0, Math.min(this.whole - span, from));
		this.to = this.from + span;
		this.draw();
	},

	zoom(factor, at = (this.from + this.to) / 2) {
		this.zoomTo(at - (at - this.from) * factor, at + (this.to - at) * factor);
	},

	pan(share) {
		const by = (this.to - this.from) * share;

		this.zoomTo(this.from + by, this.to + by);
	},

	/* --- hands --- */

	at(event) {
		const box = this.ticks.getBoundingClientRect(), share = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));

		return this.from + share * (this.to - this.from);
	},

	listen() {
		const steps = {"+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.zoomTo(0, this.whole), Home: () => this.zoomTo(0, this.whole),
			ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25)};
		const buttons = {"zoom-in": "+", "zoom-out": "-", earlier: "ArrowLeft", later: "ArrowRight", "zoom-all": "0"};
		const holder = byId("lanes");

		Object.entries(buttons).forEach(([id, key]) => byId(id).addEventListener("click", steps[key]));
		holder.addEventListener("keydown", (event) => {
			if (steps[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
				event.preventDefault();
				steps[event.key]();
			}
		});
		holder.addEventListener("wheel", (event) => {
			if (!event.ctrlKey)
				return;
			event.preventDefault();
			this.zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, this.at(event));
		}, {passive: false});
		this.listenToDrag(holder);
	},

	listenToDrag(holder) {
		let start = null, mark = null;
		const end = (event, take) => {
			if (start !== null && take && Math.abs(event.clientX - start.x) > 4)
				this.zoomTo(Math.min(start.time, this.at(event)), Math.max(start.time, this.at(event)));
			if (mark)
				mark.remove();
			start = mark = null;
		};

		holder.addEventListener("pointerdown", (event) => {
			if (event.button || !event.target.closest("canvas, .ticks"))
				return;
			start = {x: event.clientX, time: this.at(event)};
			mark = element("div", {class: "selection"});
			holder.append(mark);
			holder.setPointerCapture(event.pointerId);
		});
		holder.addEventListener("pointermove", (event) => {
			const box = holder.getBoundingClientRect(), ticks = this.ticks.getBoundingClientRect();

			if (start) {
				const here = Math.max(ticks.left, Math.min(ticks.right, event.clientX));

				mark.style.left = Math.min(start.x, here) - box.left + "px";
				mark.style.width = Math.abs(start.x - here) + "px";
			}
			this.describe(event);
		});
		holder.addEventListener("pointerup", (event) => end(event, true));
		holder.addEventListener("pointercancel", (event) => end(event, false));
		holder.addEventListener("pointerleave", hideTip);
		holder.addEventListener("dblclick", () => this.zoomTo(0, this.whole));
	},

	/* What the thread under the pointer does at that instant. */
	describe(event) {
		const found = this.drawn.find(([, canvas]) => {
			const box = canvas.getBoundingClientRect();

			return event.clientY >= box.top && event.clientY < box.bottom && event.clientX >= box.left && event.clientX < box.right;
		});

		if (!found)
			return hideTip();
		const [lane] = found, time = this.at(event), texts = [formatNs(time)];

		forRuns(lane, time, time + 1, (run) => {
			const [phase, operation, category] = lane.keys[lane.key[run]];

			texts.push(CATEGORY_NAMES[category] + " · " + nameOfOperation(operation) + (phase ? " · " + phase : "") + " · " +
				formatShare(lane.wall[run], lane.ends[run] - lane.starts[run]));
		});
		showTip(texts.slice(0, 9).join("\n"), event);
	},
};

function formatTick(at, step) {
	const unit = step >= 1e9 ? ["s", 1e9] : step >= 1e6 ? ["ms", 1e6] : step >= 1e3 ? ["µs", 1e3] : ["ns", 1];

	return (at / unit[1]).toLocaleString("en-US", {maximumFractionDigits: step >= 1e9 ? 1 : 3}) + " " + unit[0];
}
