/** Small controls that pages share. */

/** Focus without a jump of the page. @param {HTMLElement | null | undefined} element */
const focusStill = (element) => element?.focus({ preventScroll: true });

/** @param {string} text what is copied @param {string} label
 * @returns {HTMLButtonElement} */
function copyButton(text, label) {
  const button = h("button.copy", { onclick: () => void copy() }, label);
  async function copy() {
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      done = copyBySelection(text);
    }
    button.textContent = done ? "Copied" : "Select and copy it by hand";
    announce(button.textContent);
    setTimeout(() => (button.textContent = label), 2000);
  }
  return button;
}

/** For pages that are opened from disk, where some browsers have no clipboard. @param {string} text */
function copyBySelection(text) {
  const field = h("textarea.hidden", { ...UNHEARD, value: text });
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}

/** A button with a sign, its name in words, and its key. @param {string} sign @param {string} name @param {string} key @param {() => void} act */
const iconButton = (sign, name, key, act) => h("button", { label: name, title: `${name} (${key})`, onclick: act }, sign);

/** Where a search goes on: to the next or the previous of some hits, round and round. @param {number} chosen or -1 @param {number} count @param {1 | -1} direction */
const cycled = (chosen, count, direction) => (chosen < 0 && direction < 0 ? count - 1 : (chosen + direction + count) % count);

/** @param {{ label: string, value: string, choices: [string, string][], change(value: string): void }} options
 * @returns {HTMLElement} */
function select({ label, value, choices, change }) {
  const list = h("select", { onchange: () => change(list.value) },
    choices.map(([key, title]) => h("option", { value: key, selected: key === value }, title)));
  return h("label.field", h("span", label), " ", list);
}

/** Tabs, the one that is shown being a setting of the place.
 * @param {{ label: string, setting: string, items: { id: string, title: string, show(): Child }[] }} options
 * @returns {HTMLElement} */
function tabs({ label, setting, items }) {
  const panel = h("div", { role: "tabpanel", tabindex: "0", id: newId() });
  const buttons = items.map((item, index) => h("button", {
    role: "tab", id: newId(), "aria-controls": panel.id, onclick: () => choose(index, true),
  }, item.title));
  /** @param {number} index @param {boolean} [chosen] */
  function choose(index, chosen = false) {
    buttons.forEach((button, place_) => {
      button.setAttribute("aria-selected", String(place_ === index));
      button.tabIndex = place_ === index ? 0 : -1;
    });
    const item = items[index];
    const button = buttons[index];
    if (!item || !button) return;
    panel.setAttribute("aria-labelledby", button.id);
    panel.replaceChildren(h("div", item.show()));
    if (chosen) setSettings({ [setting]: index ? item.id : null }, { quiet: true });
  }
  /** @param {Event} event */
  function keys(event) {
    const { key } = /** @type {KeyboardEvent} */ (event);
    const now = buttons.indexOf(/** @type {HTMLButtonElement} */ (event.target));
    const last = items.length - 1;
    const next = key === "ArrowRight" ? now + 1 : key === "ArrowLeft" ? now - 1 : key === "Home" ? 0 : key === "End" ? last : null;
    if (next === null || now < 0) return;
    event.preventDefault();
    const index = (next + items.length) % items.length;
    choose(index, true);
    buttons[index]?.focus();
  }
  choose(Math.max(0, items.findIndex((item) => item.id === shown.place.settings[setting])));
  return h("div.tabs", h("div", { role: "tablist", label: label, onkeydown: keys }, buttons), panel);
}

/** @param {"info" | "warning" | "error"} kind @param {...Child} children
 * @returns {HTMLElement} */
function note(kind, ...children) {
  const sign = { info: "i", warning: "!", error: "✗" }[kind];
  return h(`div.note.note-${kind}`, { role: kind === "error" ? "alert" : null },
    h("span.note-sign", UNHEARD, sign),
    h("div", kind !== "info" && h("span.hidden", kind === "error" ? "Error: " : "Warning: "), children));
}

/** A place where something would be, and what fills it.
 * @param {string} what @param {string} whatToDo
 * @returns {HTMLElement} */
const empty = (what, whatToDo) => h("div.empty", h("p", h("strong", what)), h("p", whatToDo));

/** @param {string} text @param {string} title @param {"plain" | "warning" | "bad" | "good"} [kind]
 * @returns {HTMLElement} */
const badge = (text, title, kind = "plain") =>
  h(`span.badge.badge-${kind}`, { title }, text, h("span.hidden", ` (${title})`));

/** Say something to those who listen. @param {string} text */
function announce(text) {
  const live = document.getElementById("live");
  if (live) live.textContent = visible(text);
}
