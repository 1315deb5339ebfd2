/** Differences: unified diffs as programs wrote them, and two texts line by line with changed words marked. */

/** A line of a diff: its sign, its numbers before and after, and its text or what it is made of.
 * @typedef {{ sign: "+" | "-" | " " | "@", before: number | null, after: number | null, text: string, words?: Child[] }} DiffLine */

/** @typedef {["+" | "-" | " ", string]} Edit */
/** Pairs of lines or words that are compared at most: 4 million take a browser some 20 ms. */
const MOST_PAIRS = 4e6;
const SIGN_CLASSES = { "+": "added", "-": "removed", " ": "same", "@": "hunk" };
const SIGN_NAMES = { "+": "added: ", "-": "removed: ", " ": "", "@": "" };

/** A unified diff. @param {string} diff */
function diffView(diff) {
  /** @type {DiffLine[]} */
  const lines = [];
  let [before, after] = [0, 0];
  const raw = diff.split("\n");
  if (raw.at(-1) === "") raw.pop();
  for (const text of raw) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(text);
    const rest = text.slice(1);
    if (hunk) {
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
      lines.push({ sign: "@", before: null, after: null, text });
    } else if (text.startsWith("+")) lines.push({ sign: "+", before: null, after: after++, text: rest });
    else if (text.startsWith("-")) lines.push({ sign: "-", before: before++, after: null, text: rest });
    else if (text.startsWith("\\")) lines.push({ sign: "@", before: null, after: null, text });
    else lines.push({ sign: " ", before: before++, after: after++, text: rest });
  }
  return diffLines(lines);
}

/** @param {DiffLine[]} lines */
const diffLines = (lines) => inPortions(h("div.diff", { role: "group", label: "Differences" }), lines, diffLine, 1000, 5000);

/** @param {DiffLine} line */
const diffLine = ({ sign, before, after, text, words }) => h("div.diff-line", { class: SIGN_CLASSES[sign] },
  h("span.diff-number", UNHEARD, before), h("span.diff-number", UNHEARD, after),
  h("span.diff-sign", UNHEARD, sign === "@" ? " " : sign),
  SIGN_NAMES[sign] && h("span.hidden", SIGN_NAMES[sign]),
  words ? h("span.text", words) : named(text, 4000));

/** Two texts as a diff; side by side where they are too long or too different for one.
 * @param {string} expected @param {string} actual
 * @returns {HTMLElement} */
function textDiff(expected, actual) {
  if (expected === actual) return h("div", h("p.quiet", "Both are the same:"), shownText(expected));
  const one = expected.split("\n");
  const other = actual.split("\n");
  const edits = editsOf(one, other, MOST_PAIRS);
  if (!edits) return sideBySideTexts(expected, actual);
  /** @type {DiffLine[]} */
  const lines = [];
  let [before, after] = [0, 0];
  for (const [sign, text] of edits) {
    lines.push({ sign, text, before: sign === "+" ? null : ++before, after: sign === "-" ? null : ++after });
  }
  markWords(lines);
  return h("div", h("p.diff-key.quiet", h("span.removed", "− expected"), " ", h("span.added", "+ actual")), diffLines(withoutSame(lines)));
}

/** @param {string} expected @param {string} actual */
function sideBySideTexts(expected, actual) {
  /** @param {string} title @param {string} text */
  const side = (title, text) => h("div", h("h4", title), shownText(text, { limit: 8000 }));
  return h("div.two-texts", side("Expected", expected), side("Actual", actual));
}

/** Only what changed with three lines around it. @param {DiffLine[]} lines */
function withoutSame(lines) {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, at) => line.sign !== " " && near.fill(1, Math.max(0, at - 3), at + 4));
  /** @type {DiffLine[]} */
  const kept = [];
  let left = 0;
  for (let at = 0; at <= lines.length; at++) {
    const line = lines[at];
    if (line && !near[at]) left++;
    else {
      if (left) kept.push({ sign: "@", before: null, after: null, text: `${integer(left)} equal ${left > 1 ? "lines" : "line"}` });
      left = 0;
      if (line) kept.push(line);
    }
  }
  return kept;
}

/** The shortest way from one list to another, or null if more than `most` pairs would have to be compared.
 * @param {string[]} one @param {string[]} other @param {number} most
 * @returns {Edit[] | null} */
function editsOf(one, other, most) {
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start++;
  let [n, m] = [one.length, other.length];
  while (n > start && m > start && one[n - 1] === other[m - 1]) [n, m] = [n - 1, m - 1];
  const middle = pathOf(one.slice(start, n), other.slice(start, m), most);
  /** @param {string} text @returns {[" ", string]} */
  const same = (text) => [" ", text];
  return middle && [...one.slice(0, start).map(same), ...middle, ...one.slice(n).map(same)];
}

/** The same of lists that begin and end differently, by the lengths of what all their ends have in common.
 * @param {string[]} one @param {string[]} other @param {number} most
 * @returns {Edit[] | null} */
function pathOf(one, other, most) {
  const wide = other.length + 1;
  if (one.length * other.length > most) return null;
  const common = new Uint16Array((one.length + 1) * wide);
  /** @param {number} x @param {number} y */
  const at = (x, y) => /** @type {number} */ (common[x * wide + y]);
  for (let x = one.length - 1; x >= 0; x--) {
    for (let y = other.length - 1; y >= 0; y--) {
      common[x * wide + y] = one[x] === other[y] ? at(x + 1, y + 1) + 1 : Math.max(at(x + 1, y), at(x, y + 1));
    }
  }
  /** @type {Edit[]} */
  const edits = [];
  let [x, y] = [0, 0];
  while (x < one.length || y < other.length) {
    if (x < one.length && one[x] === other[y]) edits.push([" ", /** @type {string} */ (one[x++])]), y++;
    else if (y === other.length || (x < one.length && at(x + 1, y) >= at(x, y + 1))) edits.push(["-", /** @type {string} */ (one[x++])]);
    else edits.push(["+", /** @type {string} */ (other[y++])]);
  }
  return edits;
}

/** Mark the words that differ where as many lines were removed as were added after them. @param {DiffLine[]} lines */
function markWords(lines) {
  for (let at = 0; at < lines.length; at++) {
    let removed = 0;
    while (lines[at + removed]?.sign === "-") removed++;
    let added = 0;
    while (lines[at + removed + added]?.sign === "+") added++;
    if (removed && removed === added && removed <= 200) {
      for (let pair = 0; pair < removed; pair++) markPair(/** @type {DiffLine} */ (lines[at + pair]), /** @type {DiffLine} */ (lines[at + removed + pair]));
    }
    at += Math.max(removed + added - 1, 0);
  }
}

/** @param {DiffLine} removed @param {DiffLine} added */
function markPair(removed, added) {
  if (removed.text.length + added.text.length > 3000) return;
  const words = /[\p{L}\p{N}_]+|\s+|./gsu;
  const edits = editsOf(removed.text.match(words) ?? [], added.text.match(words) ?? [], 1e5);
  if (!edits?.some(([sign, text]) => sign === " " && text.trim())) return;
  const visibleSpace = (/** @type {string} */ text) => (/^\s+$/.test(text) ? text.replaceAll("\t", "→\t").replaceAll(" ", "·") : text);
  /** @param {"+" | "-"} sign */
  const side = (sign) => joined(edits.filter(([each]) => each === " " || each === sign)).map(([each, text]) => (each === " " ? text : h("mark", visibleSpace(text))));
  removed.words = side("-");
  added.words = side("+");
}

/** @param {Edit[]} edits those next to each other of one sign as one */
function joined(edits) {
  /** @type {Edit[]} */
  const found = [];
  for (const [sign, text] of edits) {
    const last = found.at(-1);
    if (last?.[0] === sign) last[1] += text;
    else found.push([sign, text]);
  }
  return found;
}

/** Changed files, each with its diff, which is made when it is opened.
 * @param {FileChange[]} changes @param {(step: number) => string} [step] the link of a step
 * @returns {HTMLElement} */
function fileChanges(changes, step) {
  /** @param {"added" | "removed"} what */
  const sum = (what) => integer(changes.reduce((all, change) => all + change[what], 0));
  // The first ones that are short are open: most changes are looked at from the start.
  let room = 200;
  return h("div",
    changes.length > 1 && h("p.quiet", `${integer(changes.length)} files, ${sum("added")} lines added, ${sum("removed")} removed`),
    inPortions(h("div"), changes, (change) => fileChange(change, (room -= change.added + change.removed + 10) > 0, step), 100, 500));
}

/** @param {FileChange} change @param {boolean} open @param {((step: number) => string) | undefined} step */
function fileChange({ path, kind, from, diff, steps, note: why, added, removed }, open, step) {
  const summary = [
    h(`span.badge.file-${kind}`, kind), " ", from && [named(from), " → "], h("b", named(path)), " ", h("small.quiet", `+${integer(added)} −${integer(removed)}`),
  ];
  return unfolding("details.file-change", summary, open, () => [
    why && h("p.quiet", why),
    steps.length > 0 && step && h("p.quiet", "By step ", commaList(steps.map((each) => anchor(step(each), each)))),
    diff ? diffView(diff) : !why && h("p.quiet", "The content was not recorded."),
  ]);
}
