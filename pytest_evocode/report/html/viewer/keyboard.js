/** Keys. None of them works while one types, and none has Ctrl, Alt or Meta, which browsers and screen readers need. */

/** Lists of rows that j and k go through, by their elements, which have the attribute `data-rows`.
 * @type {WeakMap<Element, (by: 1 | -1) => void>} */
const rowLists = new WeakMap();
/** Since when the next letter goes to a page. */
let goingSince = -Infinity;

/** @type {{ [key: string]: { help: string, run(event: KeyboardEvent): void } }} */
const KEYS = {
  "?": { help: "Show the keys", run: () => showKeys() },
  "/": { help: "Search or filter this page", run: () => focusSearch() },
  j: { help: "Next row", run: () => moveRow(1) },
  k: { help: "Previous row", run: () => moveRow(-1) },
  g: { help: "Go to a page: g and then its letter", run: (event) => (goingSince = event.timeStamp) },
};

function startKeyboard() {
  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.defaultPrevented) return;
    if (target instanceof Element && target.closest("input, textarea, select, [contenteditable], dialog")) {
      if (key === "Escape" && target instanceof HTMLInputElement) target.blur();
      return;
    }
    const going = event.timeStamp - goingSince < 3000;
    goingSince = -Infinity;
    const run = going ? goTo(key) : (shown.live.keys?.[key] ?? KEYS[key])?.run;
    if (!run) return;
    event.preventDefault();
    run(event);
  });
}

/** Titled pages by their letters. */
function pageLetters() {
  /** @type {Map<string, Page>} */
  const letters = new Map();
  for (const page of pages.values()) {
    const letter = [...page.title.toLowerCase()].find((each) => /[a-z]/.test(each) && !letters.has(each));
    if (letter) letters.set(letter, page);
  }
  return letters;
}

/** @param {string} letter */
function goTo(letter) {
  const page = pageLetters().get(letter.toLowerCase());
  return page && (() => go(link(page.name)));
}

/** @param {1 | -1} by */
function moveRow(by) {
  const active = document.activeElement?.closest("[data-rows]");
  const list = active ?? document.querySelector("main [data-rows]");
  if (list) rowLists.get(list)?.(by);
}

function focusSearch() {
  const fields = document.querySelectorAll("main input[type=search]");
  const field = /** @type {HTMLInputElement | undefined} */ ([...fields].find((each) => each.checkVisibility()));
  field?.focus();
  field?.select();
}

function showKeys() {
  /** @type {[string, string][]} */
  const rows = [
    ...entries({ ...shown.live.keys, ...KEYS, ...shown.live.keys }).map(([key, { help }]) => /** @type {[string, string]} */ ([key, help])),
    ...[...pageLetters()].map(([letter, page]) => /** @type {[string, string]} */ ([`g ${letter}`, page.title])),
    ["Enter", "Open the row"], ["Arrows", "Move in a grid, or between tabs"],
  ];
  const title = newId();
  const dialog = h("dialog.keys", { "aria-labelledby": title, onclose: () => dialog.remove() },
    h("h2", { id: title }, "Keys"),
    h("dl", rows.map(([key, help]) => h("div", h("dt", h("kbd", key)), h("dd", help)))),
    h("form", { method: "dialog" }, h("button", { type: "submit" }, "Close")));
  document.body.append(dialog);
  dialog.showModal();
}
