/* Elements and numbers. Names come from the target: they only ever become text nodes and
 * attribute values, never markup. */

function fill(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes || {})) {
		if (name.startsWith("on"))
			node.addEventListener(name.slice(2), value);
		else if (value === true)
			node.setAttribute(name, "");
		else if (value !== null && value !== undefined && value !== false)
			node.setAttribute(name, value);
	}
	node.append(...children.flat().filter((child) => child !== null && child !== undefined));
	return node;
}

function element(name, attributes, ...children) {
	return fill(document.createElement(name), attributes, children);
}

function drawing(name, attributes, ...children) {
	return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function byId(id) {
	return document.getElementById(id);
}

/* Four digits in the unit that fits, as in the text form. */
function formatNs(ns) {
	for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
		const value = ns / size;

		if (value >= 1)
			return value.toFixed(value < 10 ? 3 : value < 100 ? 2 : 1) + " " + unit;
	}
	return Math.round(ns) + " ns";
}

function formatCount(count) {
	return Math.round(count).toLocaleString("en-US");
}

/* Three digits in the unit that fits, with the half width of what it may be off by; null: not known. */
function formatEstimate(count, error, method) {
	const about = method === "traced" ? "" : "~";

	if (count === null)
		return "not known";
	if (!about && !error)
		return formatCount(count);
	if (count < 1e4 && error < 1e4)
		return about + formatCount(count) + " ± " + formatCount(error);
	const [unit, size] = [["E", 1e18], ["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]]
		.find(([, one]) => Math.max(count, error) >= 0.9995 * one);
	const value = count / size, digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	return about + value.toFixed(digits) + " " + unit + " ± " + (error / size).toFixed(digits) + " " + unit;
}

function formatPercent(percent) {
	return percent.toFixed(percent > 0 && percent < 0.1 ? 2 : 1) + " %";
}

function formatShare(part, whole) {
	return whole > 0 ? formatPercent(100 * part / whole) : "–";
}

/* A round step that cuts a range into at most `most` pieces. */
function roundStep(range, most) {
	const step = 10 ** Math.floor(Math.log10(range / most));

	return [1, 2, 5, 10].map((factor) => factor * step).find((size) => range / size <= most) || 10 * step;
}

/* --- the tip: what a coloured piece stands for --------------------------------------------- */

function showTip(text, event) {
	const tip = byId("tip");

	tip.textContent = text;
	tip.hidden = false;
	tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
	tip.style.top = Math.max(4, event.clientY - tip.offsetHeight - 10) + "px";
}

function hideTip() {
	byId("tip").hidden = true;
}

function followTips() {
	document.addEventListener("pointermove", (event) => {
		const holder = event.target.closest && event.target.closest("[data-tip]");

		if (holder)
			showTip(holder.dataset.tip, event);
		else if (!(event.target.closest && event.target.closest("#lanes")))
			hideTip();
	});
}
