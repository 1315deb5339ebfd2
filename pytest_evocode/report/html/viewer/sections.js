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
 * @param {Place} place
 * @param {[string, string][]} choices
 * @param {string[]} [cleared] settings that mean nothing after a change
 */
function settingSelect(label, setting, place, choices, cleared = []) {
  const none = Object.fromEntries(cleared.map((name) => [name, null]));
  return h("span", { "data-setting": setting }, select({
    label, choices, value: place.settings[setting] ?? "",
    change: (value) => setSettings({ ...none, [setting]: value || null }),
  }));
}

/**
 * A field whose text is a setting; it filters while one types.
 * @param {string} label
 * @param {string} setting
 * @param {Place} place
 */
function settingSearch(label, setting, place) {
  let waiting = 0;
  const field = h("input", {
    type: "search", value: place.settings[setting] ?? "", autocomplete: "off", spellcheck: "false", "data-search": true,
    oninput: () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => setSettings({ [setting]: field.value || null }, { replace: true }), 150);
    },
  });
  return h("label.field", { "data-setting": setting }, h("span", label), field);
}

/** @param {number} count @param {string} one @param {string} [many] */
const counted = (count, one, many = `${one}s`) => `${integer(count)} ${count === 1 ? one : many}`;

/** @template T, K
 * @param {T[]} items
 * @param {(item: T) => K} key
 * @returns {Map<K, T[]>} */
function grouped(items, key) {
  const groups = new Map();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}

/** Items of a list, those beyond `limit` behind a button.
 * @template T
 * @param {T[]} items
 * @param {(item: T) => Child} shown
 * @param {number} [limit] */
function longList(items, shown, limit = 50) {
  const list = h("ul.plain-list", items.slice(0, limit).map((item) => h("li", shown(item))));
  if (items.length <= limit) return list;
  let at = limit;
  const more = h("button", {
    onclick: () => {
      list.append(...items.slice(at, at + 500).map((item) => h("li", shown(item))));
      at += 500;
      if (at >= items.length) more.remove();
    },
  }, `Show more of ${integer(items.length)}`);
  return h("div", list, more);
}

/** Terms with what they are; pairs without a value are left out.
 * @param {[string, Child][]} pairs */
function facts(pairs) {
  const there = pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  return h("dl.facts", there.map(([term, value]) => h("div", h("dt", term), h("dd", value))));
}

/** @param {AttemptSummary} attempt */
const attemptLabel = (attempt) => `${report.row(attempt.row)?.name ?? attempt.agent} #${attempt.attempt}`;

/** Rounds that were passed, and how many were selected.
 * @param {AttemptSummary} attempt
 * @returns {[number, number]} */
function roundsPassed(attempt) {
  let passed = 0;
  let of = 0;
  for (const cell of attempt.cells) {
    if (cell !== ".") of += 1;
    if (cell === "p") passed += 1;
  }
  return [passed, of];
}

/** The round that an attempt fails first, or 0.
 * @param {string} cells */
const firstFailure = (cells) => cells.search(/[^p.?-]/) + 1;

/** A table of attempts.
 * @param {string} caption
 * @param {AttemptSummary[]} attempts
 * @param {Place} place */
function attemptTable(caption, attempts, place) {
  /** @type {Column<AttemptSummary>[]} */
  const columns = [
    { id: "attempt", title: "Attempt", value: attemptLabel, cell: (one) => h("a", { href: link("attempt", [one.id]) }, named(attemptLabel(one))) },
    { id: "task", title: "Task", value: (one) => one.task, cell: (one) => named(one.task) },
    { id: "mode", title: "Mode", value: (one) => one.mode },
    { id: "passed", title: "Rounds passed", number: true, value: (one) => roundsPassed(one)[0], cell: (one) => roundsPassed(one).join(" of ") },
    { id: "first", title: "Fails first in", number: true, value: (one) => firstFailure(one.cells) || null, cell: (one) => firstFailure(one.cells) ? `round ${firstFailure(one.cells)}` : "–" },
    { id: "cost", title: "Cost", number: true, value: (one) => one.cost_usd, cell: (one) => money(one.cost_usd) },
    { id: "tokens", title: "Tokens", number: true, value: (one) => one.tokens, cell: (one) => integer(one.tokens) },
    { id: "time", title: "Time", number: true, value: (one) => one.seconds, cell: (one) => duration(one.seconds) },
    { id: "state", title: "State", value: attemptState, cell: (one) => named(attemptState(one)) },
  ];
  return table({ caption, columns, items: attempts, place, open: (one) => link("attempt", [one.id]), empty: "No attempts." });
}

/** @param {AttemptSummary} attempt */
const attemptState = (attempt) =>
  attempt.left_out ? `does not count: ${attempt.left_out}` : attempt.finished ? "finished" : "not finished";
