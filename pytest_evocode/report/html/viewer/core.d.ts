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
/** What a page that is shown does further: `update` shows other settings, without it the page is shown anew. */
interface LivePage {
  update?(place: Place): void;
  /** Keys of this page, shown by "?". */
  keys?: { [key: string]: { help: string; run(event: KeyboardEvent): void } };
}
/** A page. `show` fills an empty element; it may be async. It gets an AbortSignal for when the page is left. */
interface Page {
  name: string;
  /** In the navigation, or "" for a page that is reached by links only. */
  title: string;
  show(main: HTMLElement, place: Place, left: AbortSignal): void | LivePage | Promise<void | LivePage>;
}
