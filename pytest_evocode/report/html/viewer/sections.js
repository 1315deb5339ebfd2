/** What the pages of agents, tasks and runs share: sections that stay when other settings change, names, long lists. */

/** A section of a page, made anew only when one of the settings that it uses changes.
 * @typedef {{uses: string[], make(place: Place): Child}} Section
 */

/**
 * Put sections into an element, and return what shows them for another place: those whose settings are the same stay as
 * they are, with focus and scroll position.
 * @param {HTMLElement} main
 * @param {Section[]} sections
 * @param {Place} place
 * @returns {(place: Place) => void}
 */
function showSections(main, sections, place) {
  const made = sections.map((section) => ({ ...section, holder: main.appendChild(h("div")), key: "" }));
  /** @param {Place} now */
  const update = (now) => {
    const focus = focusKey();
    for (const each of made) {
      const key = JSON.stringify(each.uses.map((name) => now.settings[name] ?? ""));
      if (key === each.key) continue;
      each.key = key;
      each.holder.replaceChildren(h("div", each.make(now)));
    }
    for (const control of main.querySelectorAll("[data-setting]")) {
      const field = /** @type {HTMLInputElement | HTMLSelectElement | null} */ (control.querySelector("select, input"));
      const value = now.settings[control.getAttribute("data-setting") ?? ""] ?? "";
      if (field && field.value !== value) field.value = value;
    }
    refocus(focus);
  };
  update(place);
  return update;
}

/**
 * @param {string} label
 * @param {string} setting
 * @param {[string, string][]} choices
 * @param {string[]} [cleared] settings that mean nothing after a change
 */
function settingSelect(label, setting, choices, cleared = []) {
  const none = Object.fromEntries(cleared.map((name) => [name, null]));
  return h("span", { "data-setting": setting }, select({
    label, choices, value: shown.place.settings[setting] ?? "",
    change: (value) => setSettings({ ...none, [setting]: value || null }),
  }));
}

/**
 * A field whose text is a setting; it filters while one types.
 * @param {string} label
 * @param {string} setting
 */
function settingSearch(label, setting) {
  let waiting = 0;
  const field = h("input", {
    type: "search", value: shown.place.settings[setting], autocomplete: "off", spellcheck: "false",
    oninput: () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => setSettings({ [setting]: field.value || null }, { replace: true }), 150);
    },
  });
  return h("label.field", { "data-setting": setting }, h("span", label), field);
}

/** @param {number} count @param {string} one @param {string} [many] */
const counted = (count, one, many = `${one}s`) => `${integer(count)} ${count === 1 ? one : many}`;

/** Items of a list, those beyond `limit` behind a button.
 * @template T
 * @param {T[]} items
 * @param {(item: T) => Child} shown
 * @param {number} [limit] */
const longList = (items, shown, limit = 50) => inPortions(h("ul.plain-list"), items, (item) => h("li", shown(item)), limit, 500);

/** Fill an element with items, those beyond the first ones behind a button that gives the next.
 * @template T
 * @param {HTMLElement} element @param {T[]} items @param {(item: T) => HTMLElement} shown @param {number} first @param {number} next */
function inPortions(element, items, shown, first, next) {
  let at = 0;
  const more = h("button.more", { onclick: () => add(next) });
  const holder = h("div", element, more);
  /** @param {number} count */
  function add(count) {
    element.append(...items.slice(at, at + count).map(shown));
    at += count;
    more.textContent = `Show more (${integer(items.length - at)})`;
    if (at >= items.length) more.remove();
  }
  add(first);
  return holder;
}

/** What unfolds, filled when it does so first. @param {"details" | `details.${string}`} tag @param {Child} summary
 * @param {boolean} open @param {() => Child} fill */
function unfolding(tag, summary, open, fill) {
  let filled = false;
  const element = h(tag, { open, ontoggle: unfold }, h("summary", summary));
  function unfold() {
    if (filled || !element.open) return;
    filled = true;
    appendAll(element, [fill()]);
  }
  unfold();
  return element;
}

/** @param {Child[]} items */
const commaList = (items) => [
  items.slice(0, 50).map((item, at) => [at > 0 && ", ", typeof item === "string" ? named(item) : item]),
  items.length > 50 && ` and ${integer(items.length - 50)} more`,
];

/** What says of a text whether it has all words of a search. @param {string | undefined} query */
function wordSearch(query = "") {
  const words = query.toLowerCase().split(/\s+/);
  return (/** @type {string} */ text) => words.every((word) => text.toLowerCase().includes(word));
}

/** Terms with what they are; pairs without a value are left out.
 * @param {[string, Child][]} pairs @param {"facts" | "terms"} [look] beside each other, or below */
const facts = (pairs, look = "facts") =>
  h(`dl.${look}`, pairs.filter(([, value]) => value || value === 0).map(([term, value]) => h("div", h("dt", term), h("dd", value))));

/** @param {[string, Child][]} pairs */
const terms = (pairs) => facts(pairs, "terms");

/** @param {string} command @param {string} [what] it is for */
function commandLine(command, what = "") {
  const copy = copyButton(command, "Copy");
  if (what) copy.setAttribute("aria-label", visible(`Copy: ${what}`));
  return h("div.command", h("code", named(command, 4000)), copy);
}

/** A part of a page that is there when its data are, or says why they are not.
 * @template T
 * @param {Promise<T>} loaded @param {AbortSignal} left @param {(data: T) => Child} shown */
function waitingPart(loaded, left, shown) {
  const part = h("div", { "aria-busy": "true" });
  void loaded.then(shown, (error) => note("error", messageOf(error))).then((content) => {
    part.removeAttribute("aria-busy");
    if (!left.aborted) appendAll(part, [content]);
  });
  return part;
}

/** Go to what a link opened below it; the router does so only for pages. @param {HTMLElement} title @param {AbortSignal} left */
function goToPart(title, left) {
  title.tabIndex = -1;
  requestAnimationFrame(() => {
    if (left.aborted || !title.isConnected) return;
    focusStill(title);
    title.scrollIntoView({ block: "nearest" });
  });
  return title;
}

/** Show what the address selects: the page is filled before it is shown, and scrolls only then.
 * @param {HTMLElement} element @param {string} selector */
function scrollToSelected(element, selector) {
  requestAnimationFrame(() => element.querySelector(selector)?.scrollIntoView({ block: "center" }));
}

/** @param {AttemptSummary} attempt */
const attemptLabel = (attempt) => `${report.row(attempt.row)?.name ?? attempt.agent} #${attempt.attempt}`;

/** Rounds that were passed, and how many count: were selected, and not left undecided.
 * @param {AttemptSummary} attempt
 * @returns {[number, number]} */
function roundsPassed(attempt) {
  let passed = 0;
  let of = 0;
  for (const cell of attempt.cells) {
    if (!".u".includes(cell)) of += 1;
    if (cell === "p") passed += 1;
  }
  return [passed, of];
}

/** The round that an attempt fails first, or 0.
 * @param {string} cells */
const firstFailure = (cells) => cells.search(/[^pu.?-]/) + 1;

/** A table of attempts.
 * @param {string} caption
 * @param {AttemptSummary[]} attempts */
function attemptTable(caption, attempts) {
  /** @type {Column<AttemptSummary>[]} */
  const columns = [
    textColumn("Attempt", attemptLabel),
    textColumn("Task", (one) => one.task),
    textColumn("Mode", (one) => one.mode),
    { title: "Rounds passed", number: integer, value: (one) => roundsPassed(one)[0], cell: (one) => roundsPassed(one).join(" of ") },
    countColumn("Fails first in round", (one) => firstFailure(one.cells) || null),
    { title: "Cost", number: money, value: (one) => one.cost_usd },
    countColumn("Tokens", (one) => one.tokens),
    { title: "Time", number: duration, value: (one) => one.seconds },
    textColumn("State", attemptState),
  ];
  return table({ caption, columns, items: attempts, open: (one) => link("attempt", [one.id]) });
}

/** @param {AttemptSummary} attempt */
const attemptState = (attempt) =>
  attempt.left_out ? `does not count: ${attempt.left_out}` : attempt.finished ? "finished" : "not finished";
