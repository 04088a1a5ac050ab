/* Tables that sort by any column, show long lists by pages and can open a line.
 *
 * A column: {title, value: row → number or string to sort by, show: row → node or text, number, wide, optional}.
 * The first column names the line. children: row → rows shown when the line is opened.
 */
const PAGE_ROWS = 40;

class SortedTable {
	constructor(holder, {caption, columns, children = null, sort = null, page = PAGE_ROWS}) {
		Object.assign(this, {columns, children, page, rows: [], shown: page});
		this.sorted = sort;
		this.opened = new Set();
		this.body = element("tbody");
		this.heads = columns.map((column, index) => this.head(column, index));
		this.table = element("table", {}, element("caption", {class: "hidden"}, caption),
			element("thead", {}, element("tr", {}, this.heads)), this.body);
		this.more = element("button", {type: "button", class: "more-rows", onclick: () => this.showMore()});
		holder.replaceChildren(element("div", {class: "scroll"}, this.table), this.more);
	}

	head(column, index) {
		const sort = element("button", {type: "button", onclick: () => this.sortBy(index)}, column.title);
		const kind = (column.number ? "number" : "") + (column.wide ? " wide" : "") +
			(column.optional ? " optional" : "");

		return element("th", {scope: "col", class: kind}, column.value ? sort : column.title);
	}

	/* A second time the other way round; numbers begin with the largest. */
	sortBy(index) {
		const again = this.sorted && this.sorted.index === index;

		this.sorted = {index, down: again ? !this.sorted.down : !!this.columns[index].number};
		this.draw();
	}

	showMore() {
		const before = this.shown;

		this.shown += 10 * PAGE_ROWS;
		this.draw();
		const next = this.body.rows[before];

		if (next && next.cells[0])
			next.cells[0].setAttribute("tabindex", "-1"), next.cells[0].focus();
	}

	update(rows) {
		this.rows = rows;
		this.shown = this.page;
		this.draw();
	}

	order() {
		if (!this.sorted)
			return this.rows;
		const {index, down} = this.sorted;
		const keyed = this.rows.map((row) => [this.columns[index].value(row), row]);
		const compare = (a, b) => typeof a[0] === "number" ? a[0] - b[0] : String(a[0]).localeCompare(String(b[0]));

		keyed.sort((a, b) => down ? compare(b, a) : compare(a, b));
		return keyed.map((pair) => pair[1]);
	}

	draw() {
		const rows = this.order(), lines = [];

		this.heads.forEach((head, index) => {
			const sorted = this.sorted && this.sorted.index === index;

			head.setAttribute("aria-sort", sorted ? (this.sorted.down ? "descending" : "ascending") : "none");
		});
		for (const row of rows.slice(0, this.shown))
			lines.push(...this.lines(row));
		if (!rows.length)
			lines.push(element("tr", {}, element("td", {class: "empty", colspan: this.columns.length},
				view.query ? "Nothing here has that name." : "Nothing was recorded.")));
		this.body.replaceChildren(...lines);
		this.more.hidden = rows.length <= this.shown;
		this.more.textContent = "Show more (" + formatCount(rows.length - this.shown) + " left)";
	}

	/* The line of a row, and its children's where it is open. */
	lines(row) {
		const open = this.opened.has(row.name);
		const children = this.children && open ? this.children(row) : [];

		return [this.line(row, this.children ? this.opener(row, open) : null),
			...children.map((child, index) => {
				const line = this.line(child, null);

				line.className = index === children.length - 1 ? "child last" : "child";
				return line;
			})];
	}

	opener(row, open) {
		return element("button", {type: "button", class: "opener", "aria-expanded": String(open),
			"aria-label": "Categories of " + row.name, onclick: (event) => this.toggle(row, event.target)});
	}

	toggle(row, button) {
		const index = [...this.body.querySelectorAll(".opener")].indexOf(button);

		if (!this.opened.delete(row.name))
			this.opened.add(row.name);
		this.draw();
		this.body.querySelectorAll(".opener")[index].focus();
	}

	line(row, opener) {
		return element("tr", {}, this.columns.map((column, index) => {
			const kind = index ? (column.number ? "number" : "") + (column.wide ? " wide" : "") : opener ? "name openable" : "name";
			const cell = element(index ? "td" : "th",
				{class: kind + (column.optional ? " optional" : ""), scope: index ? null : "row"});

			cell.append(...[index ? null : opener, column.show(row)].filter((part) => part !== null).flat());
			return cell;
		}));
	}
}
