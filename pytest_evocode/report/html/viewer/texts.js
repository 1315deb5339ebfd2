/** Texts that agents, programs and tasks wrote, made visible: colours of a terminal as classes, everything else that one
 * would not see, or that changes what one sees, as marked code points. */

/** Joiners and selectors within emoji stay: they are what makes one sign of them. */
const HIDDEN = new RegExp(
  "(?![\\t\\n])[\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u3164\\uffa0\\ufe00-\\ufe0e\\u{e0100}-\\u{e01ef}]"
  + "|(?!\\u200d)\\p{Cf}|(?<!\\p{Extended_Pictographic}[\\ufe0f\\u{1f3fb}-\\u{1f3ff}]?)\\u200d|(?<!\\p{Emoji})\\ufe0f",
  "u",
);
const HIDDEN_RUNS = new RegExp(`(${HIDDEN.source})\\1*`, "gu");
/** Sequences of a terminal: colours; other control sequences; strings such as titles and links; two characters. */
const ESCAPES =
  /\x1b\[([0-9;:]{0,100})m|(?:\x1b\[|\x9b)[0-?]{0,100}[ -/]{0,9}[@-~]|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)|\x1b[ -/]{0,9}[0-~]/g;

/** Longer texts are no names: whoever wants all of them takes `shownText`. */
const LONGEST_NAME = 20000;

/** The text with what is hidden in it as ⟨U+202E⟩, for places where there can be no marks, such as titles.
 * @param {string} text
 * @returns {string} */
function visible(text) {
  if (text.length > LONGEST_NAME) return `${visible(text.slice(0, LONGEST_NAME))} …`;
  return HIDDEN.test(text) ? text.replace(HIDDEN_RUNS, codePoints) : text;
}

/** @param {string} run one character, as often as it comes in succession */
function codePoints(run) {
  const code = /** @type {number} */ (run.codePointAt(0));
  const count = run.length / (code > 0xffff ? 2 : 1);
  const name = code === 0x1b ? "␛" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  return count > 1 ? `${name}×${count}` : name;
}

/** An element with a hostile text. Beyond `limit` characters there is a button that shows more.
 * @param {string} text
 * @param {{ ansi?: boolean, limit?: number, tag?: "pre" | "span" | "div" }} [options]
 * @returns {HTMLElement} */
function shownText(text, { ansi = false, limit = 20000, tag = "pre" } = {}) {
  const element = h(tag, { class: "text" });
  /** @type {Set<string>} */
  const look = new Set();
  let from = 0;
  let step = limit;
  const more = h("button.more", { onclick: () => append() });
  function append() {
    const to = cutAt(text, from + step, ansi);
    const part = text.slice(from, to).replaceAll("\r\n", "\n");
    more.remove();
    const first = document.createDocumentFragment();
    if (ansi) appendTerminal(first, part, look);
    else appendMarked(first, part);
    element.append(first);
    from = to;
    // Whoever asks for more gets it in few steps, but never so much at once that the browser stops.
    step = Math.min(Math.max(limit * 4, 20000), 400000);
    if (from >= text.length) return;
    more.textContent = `Show more (${integer(text.length - from)} characters)`;
    element.append(more);
  }
  append();
  return element;
}

/** A name or a remark that somebody else gave, within a line. @param {string} text @param {number} [limit] */
const named = (text, limit = 300) => shownText(text, { tag: "span", limit });

/** What an error says. @param {unknown} error */
const messageOf = (error) => (error instanceof Error ? error.message : String(error));

/** A place near one where a text can be cut: not within a pair of surrogates, a line's end or a sequence.
 * @param {string} text @param {number} at @param {boolean} ansi */
function cutAt(text, at, ansi) {
  if (at >= text.length) return text.length;
  let end = at;
  if (ansi) {
    const escape = text.lastIndexOf("\x1b", at);
    if (escape > at - 32 && escape > 0) end = escape;
  }
  const code = text.charCodeAt(end);
  return (code >= 0xdc00 && code <= 0xdfff) || code === 10 ? end + 1 : end;
}

/** @param {Element | DocumentFragment} parent @param {string} text */
function appendMarked(parent, text) {
  let done = 0;
  if (!HIDDEN.test(text)) return parent.append(text);
  for (const found of text.matchAll(HIDDEN_RUNS)) {
    if (found.index > done) parent.append(text.slice(done, found.index));
    parent.append(h("span.code-point", codePoints(found[0])));
    done = found.index + found[0].length;
  }
  if (done < text.length) parent.append(text.slice(done));
}

/** @param {Element | DocumentFragment} parent @param {string} text @param {Set<string>} look classes that are on; changed */
function appendTerminal(parent, text, look) {
  let done = 0;
  /** @param {number} end */
  const upTo = (end) => {
    if (end <= done) return;
    const plain = text.slice(done, end);
    if (!look.size) return appendMarked(parent, plain);
    const span = h("span", { class: [...look].join(" ") });
    appendMarked(span, plain);
    parent.append(span);
  };
  for (const found of text.matchAll(ESCAPES)) {
    upTo(found.index);
    done = found.index + found[0].length;
    if (found[1] !== undefined) changeLook(look, found[1]);
    else parent.append(h("span.code-point", { title: found[0].slice(0, 200) }, "␛"));
  }
  upTo(text.length);
}

/** @type {{ [code: number]: string }} */
const STYLES = { 1: "bold", 2: "faint", 3: "italic", 4: "underline", 7: "inverse", 9: "struck" };
/** What a code switches off. @type {{ [code: number]: string[] }} */
const ENDS = { 22: ["bold", "faint"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["struck"] };

/** @param {Set<string>} look @param {string} codes such as "1;31" */
function changeLook(look, codes) {
  const numbers = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at++) {
    const code = /** @type {number} */ (numbers[at]);
    if (code === 0) look.clear();
    else if (STYLES[code]) look.add(`ansi-${STYLES[code]}`);
    else if (ENDS[code]) ENDS[code].forEach((name) => look.delete(`ansi-${name}`));
    else if (code === 38 || code === 48) {
      const colour = numbers[at + 1] === 5 ? of256(numbers[at + 2] ?? 0) : ofRgb(numbers.slice(at + 2, at + 5));
      at += numbers[at + 1] === 5 ? 2 : 4;
      setColour(look, code === 38 ? "fg" : "bg", colour);
    } else {
      // Bright colours are the same as others, which the themes make legible.
      const ground = code % 20 < 10 ? "bg" : "fg";
      const colour = code % 10;
      if (code >= 30 && code < 50 && colour !== 8) setColour(look, ground, colour === 9 ? null : colour);
      else if (code >= 90 && code < 108 && colour < 8) setColour(look, ground, colour);
    }
  }
}

/** @param {Set<string>} look @param {"fg" | "bg"} ground @param {number | null} colour 0 to 7 */
function setColour(look, ground, colour) {
  for (const name of look) if (name.startsWith(`ansi-${ground}-`)) look.delete(name);
  if (colour !== null) look.add(`ansi-${ground}-${colour}`);
}

/** The nearest of 8 colours, which the themes make legible, of one of 256. @param {number} colour */
function of256(colour) {
  if (colour < 16) return colour & 7;
  if (!(colour < 232)) return 7;
  const place = colour - 16;
  return ofRgb([Math.floor(place / 36), Math.floor(place / 6) % 6, place % 6]);
}

/** @param {number[]} rgb levels of any scale */
function ofRgb([red = 0, green = 0, blue = 0]) {
  const most = Math.max(red, green, blue);
  return [red, green, blue].reduce((sum, part, place) => sum + (part > most * 0.6 ? 1 << place : 0), 0);
}
