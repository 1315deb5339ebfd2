// Search through all texts of a trajectory, a slice of time after the other.

/** Hits that are listed and that "next" goes through; more are only counted. */
const LISTED_HITS = 5000;
const EXCERPT = 60;
/** A text longer than this is searched in pieces, so that no piece takes long. */
const PIECE = 1 << 18;

/** @typedef {{ index: number, step: number, field: string, before: string, match: string, after: string }} StepHit */

/** What to look for, or the text that says why it cannot be. @param {string} query @param {boolean} regular */
function searchPattern(query, regular) {
  try {
    return new RegExp(regular ? query : query.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"), "gim");
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Yield pieces of a text that end at line ends where there are some, with where each begins.
 * @param {string} text @param {number} overlap @returns {Iterable<[string, number]>} */
function* textPieces(text, overlap) {
  let start = 0;
  while (text.length - start > PIECE) {
    const line = text.lastIndexOf("\n", start + PIECE);
    const whole = line > start;
    const end = whole ? line + 1 : start + PIECE;
    // Within a long line, what lies across the cut is found in the next piece.
    yield [text.slice(start, whole ? end : end + overlap), start];
    start = end;
  }
  yield [start ? text.slice(start) : text, start];
}

/** Give each match in a text. @param {RegExp} pattern @param {string} text @param {number} overlap
 * @returns {Generator<{ at: number, match: string } | null>} null after each piece, where work may pause */
function* matches(pattern, text, overlap) {
  let last = -1;
  for (const [piece, start] of textPieces(text, overlap)) {
    pattern.lastIndex = 0;
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
    yield null;
  }
}

/** Go through a trajectory; `found` is told of the hits so far after each slice.
 * @param {TrajectoryParts} parts @param {RegExp} pattern @param {string} query
 * @param {{ stop: AbortSignal, progress(hits: StepHit[], count: number, share: number): void }} options */
async function searchSteps(parts, pattern, query, { stop, progress }) {
  /** @type {StepHit[]} */
  const hits = [];
  let count = 0;
  let until = performance.now() + SLICE;
  for await (const { steps, start } of parts.through(0, 1, stop)) {
    await breathe();
    until = performance.now() + SLICE;
    for (const [offset, step] of steps.entries()) {
      for (const [field, text] of stepTexts(step)) {
        for (const each of matches(pattern, text, query.length)) {
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
function hitExcerpt(hit) {
  return h(
    "span",
    { class: "excerpt" },
    shownText(hit.before.replace(/\s+/g, " "), { tag: "span" }),
    h("mark", null, shownText(hit.match, { tag: "span" })),
    shownText(hit.after.replace(/\s+/g, " "), { tag: "span" }),
  );
}

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
