/** Rounds as a grid of cells: a colour, a letter and words for each; only those that are seen are drawn. */

/** A row's link is that of its label; `hrefs` and `titles` are those of its cells, by column from 0; `first` is marked.
 * @typedef {{ label: string, href: string, cells: string, titles(column: number): string, hrefs(column: number): string, first: number }} CellRow
 * @typedef {{ caption: string, rows: CellRow[], columns: number, left: AbortSignal }} CellGrid */

/** What a character means, and what is drawn for it. @type {{ [cell: string]: [string, string] }} */
const CELLS = {
  p: ["✓", "passed"], r: ["R", "failed, with a regression"], n: ["N", "failed, with a new miss"],
  c: ["C", "failed, carried only"], s: ["S", "failed, stale only"], t: ["T", "timeout"], b: ["B", "no case ran"],
  a: ["A", "error of the agent"], i: ["I", "infrastructure error"], o: ["F", "failed otherwise"], u: ["U", "undecided"], k: ["K", "skipped"],
  "-": ["–", "not reached"], ".": ["", "not selected"], "?": ["…", "under way"],
};
const SIZE = 24;

/** @param {string | undefined} cell */
const cellName = (cell) => CELLS[cell ?? ""]?.[1] ?? "unknown";

/** The class of a cell's colour. @param {string | undefined} cell */
const cellClass = (cell = "") => `state-${/^[a-z]$/.test(cell) ? cell : "none"}`;

/** Says what the letters of some cells mean. @param {string} cells @returns {HTMLElement} */
const cellLegend = (cells) => h("ul.legend", { label: "Legend" }, entries(CELLS).filter(([cell]) => cells.includes(cell)).map(
  ([cell, [sign, name]]) => h("li", h("span.cell", { class: cellClass(cell), ...UNHEARD }, sign), ` ${name}`)));

/** A grid with one tab stop; arrows move in it and Enter opens a cell.
 * @param {CellGrid} options
 * @returns {HTMLElement} */
function cellGrid({ caption, rows, columns, left }) {
  const narrow = window.innerWidth < 600;
  const side = within(highest(rows.map((row) => row.label.length)) * 8 + 16, 72, narrow ? 112 : 260);
  // Numbers that do not fit into a cell stand upright.
  const upright = columns > 999;
  const top = upright ? 60 : SIZE;
  const inner = style(h("div.cells-inner", { role: "presentation" }), {
    width: `${side + columns * SIZE}px`, height: `${top + rows.length * SIZE}px`,
  });
  const grid = h("div.cells", { class: upright && "cells-upright", role: "grid", label: caption, "aria-rowcount": rows.length + 1, "aria-colcount": columns + 1, onkeydown: keys }, inner);
  let active = { row: 0, column: 0 };
  let drawn = "";

  /** @param {boolean} [anew] */
  function draw(anew = false) {
    if (!grid.clientWidth) return;
    const view = {
      from: span(grid.scrollLeft, 0), to: span(grid.scrollLeft + grid.clientWidth - side, 1),
      first: span(grid.scrollTop, 0), last: span(grid.scrollTop + grid.clientHeight - top, 1),
    };
    view.to = Math.min(view.to, columns);
    view.last = Math.min(view.last, rows.length);
    const key = Object.values(view).join();
    if (key === drawn && !anew) return;
    drawn = key;
    const focused = grid.contains(document.activeElement) && document.activeElement?.closest(".cell-box");
    const shownRows = [];
    for (let at = view.first; at < view.last; at++) shownRows.push(row(at, view.from, view.to));
    inner.replaceChildren(head(view.from, view.to), ...shownRows);
    if (!inner.querySelector(".cell-box [tabindex='0'], .cell-box[tabindex='0']")) target(inner.querySelector(".cell-box"))?.setAttribute("tabindex", "0");
    if (focused) focusStill(cellAt(active));
  }
  /** Cells are drawn by the eight, so that scrolling does not draw at each step. @param {number} pixels @param {number} more */
  const span = (pixels, more) => Math.max(0, (Math.floor(pixels / SIZE / 8) + more) * 8);
  /** @param {number} from @param {number} to */
  function head(from, to) {
    const cells = Array.from({ length: to - from }, (_, at) => style(
      h("span.cells-column", { role: "columnheader", "aria-colindex": from + at + 2, label: `round ${from + at + 1}` }, from + at + 1),
      { left: `${side + (from + at) * SIZE}px`, width: `${SIZE}px`, height: `${top}px` }));
    return style(h("div.cells-head", { role: "row", "aria-rowindex": 1 },
      style(h("span.cells-side", { role: "columnheader", "aria-colindex": 1 }, h("span.hidden", "Row")), { width: `${side}px`, height: `${top}px` }), cells), { height: `${top}px` });
  }
  /** @param {number} at @param {number} from @param {number} to */
  function row(at, from, to) {
    const item = /** @type {CellRow} */ (rows[at]);
    const cells = [];
    for (let column = from; column < Math.min(to, item.cells.length); column++) cells.push(cell(item, at, column));
    const label = h("a", { href: item.href, title: item.label }, item.label);
    return style(h("div.cells-row", { role: "row", "aria-rowindex": at + 2 },
      style(h("span.cells-side", { role: "rowheader", "aria-colindex": 1 }, label), { width: `${side}px` }), cells), { top: `${top + at * SIZE}px` });
  }
  /** @param {CellRow} item @param {number} at @param {number} column */
  function cell(item, at, column) {
    const kind = item.cells[column] ?? "";
    const title = item.titles(column);
    const tabindex = at === active.row && column === active.column ? "0" : "-1";
    const look = cellClass(kind) + (item.first === column ? " cell-first" : "");
    const sign = CELLS[kind]?.[0] ?? "";
    const href = kind !== "." && item.hrefs(column);
    const inside = href
      ? h("a.cell", { class: look, href, title, tabindex, label: title }, sign)
      : h("span.cell", { class: look, title }, h("span", UNHEARD, sign), h("span.hidden", title));
    return style(h("span.cell-box", { role: "gridcell", "aria-colindex": column + 2, "data-at": `${at},${column}`, tabindex: href ? null : tabindex, onfocusin: () => (active = { row: at, column }) }, inside),
      { left: `${side + column * SIZE}px` });
  }
  /** @param {Element | null} box @returns {HTMLElement | null} */
  const target = (box) => /** @type {HTMLElement | null} */ (box?.querySelector("a") ?? box);
  const cellAt = (/** @type {typeof active} */ { row: at, column }) => target(inner.querySelector(`[data-at="${at},${column}"]`));

  /** @param {Event} event */
  function keys(event) {
    const { key, ctrlKey } = /** @type {KeyboardEvent} */ (event);
    const moves = /** @type {{ [key: string]: [number, number] }} */ ({
      ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], PageUp: [-10, 0], PageDown: [10, 0],
      Home: [ctrlKey ? -Infinity : 0, -Infinity], End: [ctrlKey ? Infinity : 0, Infinity],
    });
    const move = moves[key];
    if (!move || !(/** @type {Element} */ (event.target).closest(".cell-box"))) return;
    event.preventDefault();
    const at = within(active.row + move[0], 0, rows.length - 1);
    const last = (rows[at]?.cells.length ?? 1) - 1;
    active = { row: at, column: within(active.column + move[1], 0, last) };
    scrollToActive();
    draw(true);
    focusStill(cellAt(active));
  }
  function scrollToActive() {
    const x = active.column * SIZE;
    const y = active.row * SIZE;
    const wide = grid.clientWidth - side;
    const high = grid.clientHeight - top;
    if (x < grid.scrollLeft) grid.scrollLeft = x;
    else if (x + SIZE > grid.scrollLeft + wide) grid.scrollLeft = x + SIZE - wide;
    if (y < grid.scrollTop) grid.scrollTop = y;
    else if (y + SIZE > grid.scrollTop + high) grid.scrollTop = y + SIZE - high;
  }
  grid.addEventListener("scroll", () => draw());
  const resized = new ResizeObserver(() => draw());
  resized.observe(grid);
  left.addEventListener("abort", () => resized.disconnect());
  return grid;
}
