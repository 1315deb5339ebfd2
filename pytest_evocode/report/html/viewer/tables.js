/** Tables that sort by their headings and are gone through by keys; of long ones only the rows that are seen are there. */

/** @template T
 * @typedef {object} Column
 * @property {string} title unique in its table: the order in an address names it
 * @property {string} [help]
 * @property {(value: number | null) => Child} [number] how the value is written, if it is a number
 * @property {(item: T) => string | number | null} value what it is sorted by
 * @property {(item: T) => Child} [cell] the value unless given */
/** @template T
 * @typedef {object} TableOptions
 * @property {string} caption
 * @property {Column<T>[]} columns
 * @property {T[]} items
 * @property {(item: T) => string} [open] the link that a row opens
 * @property {string} [empty]
 * @property {string} [sort] a column's title, with "-" before it for the largest first
 * @property {string} [csv] the file that has the table */

/** Tables with more rows draw only those that are seen. */
const ALL_ROWS = 300;
const ORDER = new Intl.Collator("en", { numeric: true });

/** @template T @param {string} title @param {(item: T) => string | number | null} value @returns {Column<T>} */
const textColumn = (title, value) => ({ title, value });

/** @template T @param {string} title @param {(item: T) => number | null} value @param {string} [help] @returns {Column<T>} */
const countColumn = (title, value, help) => ({ title, help, number: integer, value });

/** A table whose order is a setting of its own, with rows that j and k go through and Enter opens.
 * @template T
 * @param {TableOptions<T>} options
 * @returns {HTMLElement} */
function table(options) {
  const { caption, columns, open } = options;
  const heads = columns.map((column) => h("th", { scope: "col", class: column.number ? "number" : null, title: column.help },
    h("button.sort", { onclick: () => sortBy(column) }, column.title, h("span.arrow", UNHEARD))));
  const body = h("tbody");
  const element = h("table.sorted", { "data-rows": true, "aria-rowcount": options.items.length + 1 },
    h("caption", caption, options.csv && !inPage.size && [" ", h("a", { href: options.csv, download: true }, "CSV")]),
    h("thead", h("tr", { "aria-rowindex": 1 }, heads)), body);
  // Tables of one page differ by their captions.
  const setting = `sort-${caption.toLowerCase().match(/[a-z0-9]+/g)?.slice(0, 5).join("-") ?? ""}`;
  const current = () => sortOf(columns, shown.place.settings[setting] ?? options.sort);
  const named = Math.max(0, columns.findIndex((column) => !column.number));
  let items = options.items;
  const long = items.length > ALL_ROWS;
  const scroller = h("div.wide", { class: long && "table-long", tabindex: long ? "0" : null, role: long ? "region" : null, label: long ? caption : null }, element);
  const rows = rowWindow(scroller, body, long, (index) => tableRow(/** @type {T} */ (items[index]), index, columns, named, open));

  /** @param {Column<T>} column */
  function sortBy(column) {
    const now = current();
    const down = now?.column === column ? !now.down : Boolean(column.number);
    setSettings({ [setting]: (down ? "-" : "") + column.title }, { replace: true, quiet: true });
    sorted();
    announce(`Sorted by ${column.title}, ${down ? "descending" : "ascending"}`);
  }
  function sorted() {
    const sort = current();
    heads.forEach((head, index) => {
      const on = sort?.column === columns[index];
      if (on) head.setAttribute("aria-sort", sort?.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    items = sort ? sortedItems(options.items, sort) : options.items;
    rows.show(items.length);
  }
  sorted();
  rowLists.set(element, rows.move);
  if (!items.length) return h("div", element, h("p.empty", options.empty ?? "There is nothing to list here."));
  return h("div", scroller);
}

/** A small table that needs no sorting, whose rows are named by their first cells.
 * @param {Child} caption @param {string[]} heads @param {Child[][]} rows @param {number} [texts] how many columns are no numbers */
function plainTable(caption, heads, rows, texts = 1) {
  /** @param {number} at */
  const look = (at) => at >= texts && "number";
  return h("div.wide", h("table",
    h("caption", caption),
    h("thead", h("tr", heads.map((head, at) => h("th", { scope: "col", class: look(at) }, head)))),
    h("tbody", rows.map((row) => h("tr", row.map((cell, at) => h(at ? "td" : "th", { scope: at ? null : "row", class: look(at) }, cell)))))));
}

/** @template T
 * @param {Column<T>[]} columns @param {string | undefined} setting
 * @returns {{ column: Column<T>, down: boolean } | null} */
function sortOf(columns, setting = "") {
  const down = setting.startsWith("-");
  const column = columns.find((each) => each.title === setting.slice(down ? 1 : 0));
  return column ? { column, down } : null;
}

/** Items in order, those without a value last. @template T
 * @param {T[]} items @param {{ column: Column<T>, down: boolean }} sort */
function sortedItems(items, { column, down }) {
  const keyed = items.map((item) => ({ item, key: column.value(item) }));
  keyed.sort(({ key: one }, { key: other }) => {
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    const order = typeof one === "number" && typeof other === "number" ? one - other : ORDER.compare(String(one), String(other));
    return down ? -order : order;
  });
  return keyed.map(({ item }) => item);
}

/** @template T
 * @param {T} item @param {number} index @param {Column<T>[]} columns
 * @param {number} naming the column that names the row @param {((item: T) => string) | undefined} open */
function tableRow(item, index, columns, naming, open) {
  const href = open?.(item);
  const cells = columns.map((column, place) => {
    const value = column.value(item);
    const content = column.cell ? column.cell(item) : typeof value === "string" ? named(value) : typeof value === "number" ? column.number?.(value) : value;
    const cell = h(place === naming ? "th" : "td", { class: column.number && "number", scope: place === naming && "row" }, content ?? UNKNOWN);
    if (place === naming && href && !cell.querySelector("a")) cell.replaceChildren(anchor(href, ...cell.childNodes));
    return cell;
  });
  /** @type {HTMLElement} */
  const row = h("tr", {
    tabindex: "-1", "data-index": index, "aria-rowindex": index + 2,
    onkeydown: (event) => href && event.target === row && /** @type {KeyboardEvent} */ (event).key === "Enter" && go(href),
  }, cells);
  return row;
}

/** The rows of a table's body that are drawn.
 * @param {HTMLElement} scroller @param {HTMLElement} body @param {boolean} long
 * @param {(index: number) => HTMLElement} render */
function rowWindow(scroller, body, long, render) {
  let count = 0;
  let height = 34;
  let drawn = [-1, -1];
  /** @param {boolean} [anew] */
  function draw(anew = false) {
    const from = long ? Math.max(0, Math.floor(scroller.scrollTop / height / 20) * 20 - 20) : 0;
    const to = long ? Math.min(count, from + Math.ceil((scroller.clientHeight || 600) / height) + 60) : count;
    if (!anew && from === drawn[0] && to === drawn[1]) return;
    drawn = [from, to];
    const focused = indexOf(document.activeElement);
    const rows = Array.from({ length: to - from }, (_, at) => render(from + at));
    body.replaceChildren(gap(from), ...rows, gap(count - to));
    if (focused !== null && focused >= from && focused < to) focusStill(rows[focused - from]);
    // The first rows tell how high one is; later ones would make the list jump.
    const first = rows[0];
    if (long && first?.offsetHeight && anew) height = (rows.at(-1)?.offsetTop ?? 0) > first.offsetTop ? (/** @type {HTMLElement} */ (rows.at(-1)).offsetTop - first.offsetTop) / (rows.length - 1) : first.offsetHeight;
  }
  /** @param {number} hidden how many rows */
  const gap = (hidden) => style(h("tr.gap", UNHEARD), { height: `${hidden * height}px`, display: hidden ? "" : "none" });
  /** @param {Element | null} element */
  const indexOf = (element) => (element && body.contains(element) ? Number(element.closest("tr")?.getAttribute("data-index")) : null);
  /** @param {1 | -1} by */
  function move(by) {
    const index = Math.min(Math.max((indexOf(document.activeElement) ?? (by > 0 ? -1 : count)) + by, 0), count - 1);
    if (long && (index * height < scroller.scrollTop || (index + 2) * height > scroller.scrollTop + scroller.clientHeight)) {
      scroller.scrollTop = index * height - scroller.clientHeight / 2;
    }
    draw();
    const row = /** @type {HTMLElement | null} */ (body.querySelector(`[data-index="${index}"]`));
    focusStill(row);
    row?.scrollIntoView({ block: "nearest" });
  }
  if (long) scroller.addEventListener("scroll", () => draw());
  return {
    move,
    /** @param {number} now how many items there are */
    show(now) {
      count = now;
      draw(true);
    },
  };
}
