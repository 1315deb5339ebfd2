// Search through all texts of a trajectory, a slice of time after the other.

/** Hits that are listed and that "next" goes through; more are only counted. */
const LISTED_HITS = 5000;
const EXCERPT = 60;
/** Texts longer than this are searched in pieces, so that no piece takes long; those for regular expressions, which may
 * take the square of a length, are small and overlap. */
const PIECE = 1 << 18;
const REGULAR_PIECE = 1 << 12;
const REGULAR_OVERLAP = 256;
/** Milliseconds for one piece, after which a search gives up. */
const TOO_LONG = 500;

/** @typedef {{ index: number, step: number, field: string, before: string, match: string, after: string }} StepHit */

/** What to look for, or the text that says why it cannot be. @param {string} query @param {boolean} regular */
function searchPattern(query, regular) {
  try {
    if (regular && isEndless(query)) return "This may take forever, as it repeats what repeats itself or has alternatives. Write a+ for (a+)+.";
    return new RegExp(regular ? query : query.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"), "gim");
  } catch (error) {
    return messageOf(error);
  }
}

/** Whether a regular expression repeats a group in which something repeats or has alternatives: a few characters can
 * take such a one hours, and nothing in a browser stops it. @param {string} source */
function isEndless(source) {
  const groups = [false];
  let closed = false;
  for (const [token] of source.matchAll(/\\.|\[(?:\\.|[^\]\\])*\]|\{\d+,\d*\}|[^]/g)) {
    const repeats = /^(?:[*+]|\{\d)/.test(token);
    if (closed && repeats) return true;
    if (token === "(") groups.push(false);
    closed = token === ")" && groups.pop() === true;
    if (closed || repeats || token === "|") groups[groups.length - 1] = true;
  }
  return false;
}

/** Yield pieces of a text that end at line ends where there are some, with where each begins.
 * @param {string} text @param {number} overlap @param {boolean} regular @returns {Iterable<[string, number]>} */
function* textPieces(text, overlap, regular) {
  const most = regular ? REGULAR_PIECE : PIECE;
  let start = 0;
  while (text.length - start > most) {
    const line = text.lastIndexOf("\n", start + most);
    const whole = line > start;
    const end = whole ? line + 1 : start + most;
    // What lies across the cut is found in the next piece; words have no line ends in them.
    yield [text.slice(start, regular ? end + REGULAR_OVERLAP : whole ? end : end + overlap), start];
    start = end;
  }
  yield [start ? text.slice(start) : text, start];
}

/** Give each match in a text. @param {RegExp} pattern @param {string} text @param {number} overlap @param {boolean} [regular]
 * @returns {Generator<{ at: number, match: string } | null>} null after each piece, where work may pause */
function* matches(pattern, text, overlap, regular = false) {
  let last = -1;
  for (const [piece, start] of textPieces(text, overlap, regular)) {
    pattern.lastIndex = 0;
    const begun = performance.now();
    for (let found = pattern.exec(piece); found; found = pattern.exec(piece)) {
      const at = start + found.index;
      if (!found[0]) {
        pattern.lastIndex++;
        continue;
      }
      // A match in the overlap of two pieces is one.
      if (at > last) yield { at, match: found[0] };
      last = at;
    }
    if (regular && performance.now() - begun > TOO_LONG) throw new Error("This takes too long. Look for something more exact.");
    yield null;
  }
}

/** Go through a trajectory; `found` is told of the hits so far after each slice.
 * @param {TrajectoryParts} parts @param {RegExp} pattern @param {string} query
 * @param {{ regular: boolean, stop: AbortSignal, progress(hits: StepHit[], count: number, share: number): void }} options */
async function searchSteps(parts, pattern, query, { regular, stop, progress }) {
  /** @type {StepHit[]} */
  const hits = [];
  let count = 0;
  let until = performance.now() + SLICE;
  for await (const { steps, start } of parts.through(0, 1, stop)) {
    await breathe();
    until = performance.now() + SLICE;
    for (const [offset, step] of steps.entries()) {
      for (const [field, text] of stepTexts(step)) {
        for (const each of matches(pattern, text, query.length, regular)) {
          if (each) {
            count++;
            if (hits.length < LISTED_HITS) hits.push(stepHit(step, start + offset, field, text, each.at, each.match));
          }
          if (performance.now() < until) continue;
          progress(hits, count, (start + offset) / parts.count);
          await breathe();
          if (stop.aborted) return;
          until = performance.now() + SLICE;
        }
      }
    }
  }
  if (!stop.aborted) progress(hits, count, 1);
}

/** @param {Step} step @param {number} index @param {string} field @param {string} text @param {number} at
 * @param {string} match @returns {StepHit} */
function stepHit(step, index, field, text, at, match) {
  const end = at + match.length;
  return {
    index,
    step: step.id,
    field,
    before: text.slice(Math.max(0, at - EXCERPT), at),
    match: match.slice(0, EXCERPT * 3),
    after: text.slice(end, end + EXCERPT),
  };
}

/** @param {StepHit} hit */
const hitExcerpt = (hit) => h(
  "span.excerpt",
  named(hit.before.replace(/\s+/g, " "), 1000),
  h("mark", named(hit.match, 1000)),
  named(hit.after.replace(/\s+/g, " "), 1000),
);

/** Mark what is found in the steps that are drawn. Ranges leave the nodes as they are, so nothing has to be undone.
 * @param {HTMLElement} element @param {RegExp | null} pattern */
function highlight(element, pattern) {
  if (typeof Highlight === "undefined") return;
  CSS.highlights.delete("found");
  if (!pattern) return;
  // A search that is under way goes on from where its own pattern stands.
  const own = new RegExp(pattern);
  const ranges = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < 500; node = walker.nextNode()) {
    for (const each of matches(own, node.nodeValue ?? "", 0)) {
      if (!each) continue;
      const range = new Range();
      range.setStart(node, each.at);
      range.setEnd(node, each.at + each.match.length);
      ranges.push(range);
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}
