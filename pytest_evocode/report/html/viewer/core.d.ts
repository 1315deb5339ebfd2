/** What the viewer's scripts share. All are classic scripts that the writer joins, in the order of `SCRIPTS` in
 * `pytest_evocode/report/html/bundle.py`, within one function; each declares its functions and constants at its top
 * level, with names that no other script has.
 */

type Child = Node | string | number | null | undefined | false | Child[];
type Properties = { [name: string]: string | number | boolean | null | undefined | EventListener };

/** loading.js (not data.js, of which data.d.ts would be the declarations) */
interface Load {
  (name: "index"): Promise<Index>;
  (name: "comparisons"): Promise<Comparisons>;
  (name: `tasks/${string}`): Promise<TaskData>;
  (name: `attempts/${string}`): Promise<AttemptData>;
  (name: `trajectories/${string}`): Promise<Step[]>;
}

/** router.js: a place is a page, what it shows, and its settings: `#/round/ID/3?tab=output`. */
interface Place { page: string; path: string[]; settings: { [name: string]: string }; }
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

/** virtual.js: a list of items of any height that draws only what is seen. */
interface VirtualList { element: HTMLElement; scrollTo(index: number): void; refresh(): void; first(): number; setCount(count: number): void; }
declare function virtualList(options: { count: number; render(index: number): HTMLElement; estimate: number; label: string; left: AbortSignal }): VirtualList;
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
