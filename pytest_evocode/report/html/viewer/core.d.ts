/** What the viewer's scripts share. All are classic scripts that the writer joins, in the order of `SCRIPTS` in
 * `pytest_evocode/report/html/bundle.py`, within one function; each declares its functions and constants at its top
 * level, with names that no other script has.
 */

type Child = Node | string | number | null | undefined | false | Child[];
type Properties = { [name: string]: string | number | boolean | null | undefined | EventListener };

/** elements.js: make an element. Children that are strings become text nodes; there is no way to give HTML. Names that
 * begin with "on" are listeners; false, null and undefined leave an attribute out, true makes it empty. */
declare function h<K extends keyof HTMLElementTagNameMap>(tag: K, properties?: Properties | null, ...children: Child[]): HTMLElementTagNameMap[K];
declare function svg<K extends keyof SVGElementTagNameMap>(tag: K, properties?: Properties | null, ...children: Child[]): SVGElementTagNameMap[K];
/** Geometry is set by properties of the style object, which a strict policy allows: `style(node, {width: "3px"})`. */
declare function style<T extends HTMLElement | SVGElement>(element: T, values: { [property: string]: string }): T;

/** texts.js: hostile text made visible: ANSI colours as classes, other control and bidi characters as marked code points,
 * a text beyond `limit` characters (default 20,000) cut with a button that shows more. */
declare function shownText(text: string, options?: { ansi?: boolean; limit?: number; tag?: "pre" | "span" | "div" }): HTMLElement;
/** numbers.js: English numbers with units; "–" for null. */
declare function score(value: number | null | undefined, digits?: number): string;
declare function integer(value: number | null | undefined): string;
declare function money(value: number | null | undefined): string;
declare function duration(seconds: number | null | undefined): string;
declare function timeOfDay(iso: string | null | undefined): string;

/** data.js: load a file of `data/`, once; rejects with an Error whose message says which file is missing or damaged. */
declare function load(name: "index"): Promise<Index>;
declare function load(name: "comparisons"): Promise<Comparisons>;
declare function load(name: `tasks/${string}`): Promise<TaskData>;
declare function load(name: `attempts/${string}`): Promise<AttemptData>;
declare function load(name: `trajectories/${string}`): Promise<Step[]>;
/** The index, and what is found by id; set before any page is shown. */
declare const report: {
  index: Index;
  row(id: string): Row | undefined;
  task(name: string): TaskSummary | undefined;
  attempt(id: string): AttemptSummary | undefined;
  attemptsAt(task: string): AttemptSummary[];
};

/** router.js: a place is a page, what it shows, and its settings: `#/round/ID/3?tab=output`. */
interface Place { page: string; path: string[]; settings: { [name: string]: string }; }
declare function link(page: string, path?: (string | number)[], settings?: { [name: string]: string | null }): string;
/** Change settings of the current place; a step of the history unless `replace`. The page is not shown anew: its `update`
 * is called if it has one, else it is shown anew. */
declare function setSettings(settings: { [name: string]: string | null }, options?: { replace?: boolean }): void;
declare function go(url: string): void;
/** A page. `show` fills an empty element; it may be async. It gets an AbortSignal for when the page is left. */
interface Page {
  name: string;
  /** In the navigation, or "" for a page that is reached by links only. */
  title: string;
  show(main: HTMLElement, place: Place, left: AbortSignal): void | Promise<void>;
  update?(place: Place): void;
  /** Keys of this page, shown by "?". */
  keys?: { [key: string]: { help: string; run(event: KeyboardEvent): void } };
}
declare function definePage(page: Page): void;
/** The title in the page, the document's title and the trail of links above. */
declare function heading(main: HTMLElement, title: string, trail?: [string, string][]): void;

/** tables.js: a table that sorts by its headings (kept in the settings as `sort`), with rows that j and k go through and
 * Enter opens. Long ones draw only what is seen. */
interface Column<T> {
  id: string; title: string; help?: string; number?: boolean;
  value(item: T): string | number | null;
  /** The default shows the value as text. */
  cell?(item: T): Child;
}
declare function table<T>(options: { caption: string; columns: Column<T>[]; items: T[]; open?(item: T): string; place: Place; empty?: string; sort?: string; csv?: string }): HTMLElement;
/** virtual.js: a list of items of any height that draws only what is seen. */
interface VirtualList { element: HTMLElement; scrollTo(index: number): void; refresh(): void; first(): number; setCount(count: number): void; }
declare function virtualList(options: { count: number; render(index: number): HTMLElement; estimate: number; label: string; left: AbortSignal }): VirtualList;
/** cells.js: rounds x something as a grid of coloured cells with shapes, one tab stop, arrow keys; drawn on what is seen. */
interface CellGrid { caption: string; rows: { label: string; href?: string; cells: string; titles?(column: number): string; hrefs?(column: number): string; first?: number }[]; columns: { label: string; title?: string }[]; left: AbortSignal; }
declare function cellGrid(options: CellGrid): HTMLElement;
declare function cellName(cell: string): string;
declare function cellLegend(cells: string): HTMLElement;
/** charts.js: SVG; each chart has a title, a description and a table for screen readers. */
declare function intervalBar(value: number | null, interval: Interval | null | undefined, low: number, high: number, label: string): SVGElement;
declare function scatterChart(options: { title: string; x: string; y: string; points: { x: number; y: number; label: string; mark: boolean; href?: string }[]; logarithmic?: boolean }): HTMLElement;
declare function lineChart(options: { title: string; x: string; y: string; lines: { label: string; points: { x: number; y: number; note?: string }[] }[] }): HTMLElement;
declare function barChart(options: { title: string; bars: { label: string; value: number | null; interval?: Interval | null; note?: string; href?: string }[]; low: number; high: number; format(value: number): string }): HTMLElement;
declare function stackedBars(options: { title: string; parts: string[]; bars: { label: string; values: number[]; href?: string }[]; format(value: number): string }): HTMLElement;
/** diffs.js: a unified diff, and two texts as a diff by lines with changed words marked. */
declare function diffView(diff: string, options?: { limit?: number }): HTMLElement;
declare function textDiff(expected: string, actual: string): HTMLElement;
declare function fileChanges(changes: FileChange[], options?: { step?(step: number): string }): HTMLElement;
/** controls.js */
declare function copyButton(text: string, label: string): HTMLButtonElement;
declare function select(options: { label: string; value: string; choices: [string, string][]; change(value: string): void }): HTMLElement;
declare function tabs(options: { label: string; place: Place; setting: string; items: { id: string; title: string; show(): Child }[] }): HTMLElement;
declare function note(kind: "info" | "warning" | "error", ...children: Child[]): HTMLElement;
declare function empty(what: string, whatToDo: string): HTMLElement;
declare function badge(text: string, title: string, kind?: "plain" | "warning" | "bad" | "good"): HTMLElement;
