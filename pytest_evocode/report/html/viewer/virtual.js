/** A list of items of any height that draws only what is seen. Heights are known when an item was drawn once, and
 * guessed before; what one looks at stays where it is when heights above it become known. */

/** More than this no browser scrolls; the guesses get smaller for lists that would be longer. */
const TALLEST = 12e6;
/** What is drawn above and below the view, in pixels. */
const BEYOND = 500;

/** Heights of items, with sums that are changed and found in logarithmic time.
 * @param {number} count @param {number} guess */
function heightsOf(count, guess) {
  const heights = new Float64Array(count).fill(guess);
  const sums = new Float64Array(count + 1);
  for (let at = 1; at <= count; at++) {
    sums[at] = /** @type {number} */ (sums[at]) + guess;
    const next = at + (at & -at);
    if (next <= count) sums[next] = /** @type {number} */ (sums[next]) + /** @type {number} */ (sums[at]);
  }
  return {
    /** @param {number} index @param {number} height */
    set(index, height) {
      const more = height - /** @type {number} */ (heights[index]);
      if (!more) return false;
      heights[index] = height;
      for (let at = index + 1; at <= count; at += at & -at) sums[at] = /** @type {number} */ (sums[at]) + more;
      return true;
    },
    /** Where an item begins. @param {number} index */
    above(index) {
      let sum = 0;
      for (let at = Math.min(index, count); at > 0; at -= at & -at) sum += /** @type {number} */ (sums[at]);
      return sum;
    },
    /** The item at a place. @param {number} place */
    at(place) {
      let index = 0;
      let rest = place;
      for (let bit = 1 << Math.floor(Math.log2(count || 1)); bit; bit >>= 1) {
        const sum = sums[index + bit];
        if (index + bit <= count && sum !== undefined && sum <= rest) {
          index += bit;
          rest -= sum;
        }
      }
      return Math.min(index, Math.max(count - 1, 0));
    },
  };
}

/** @typedef {{ element: HTMLElement, scrollTo(index: number): void, refresh(): void, first(): number, setCount(count: number): void }} VirtualList */

/** @param {{ count: number, render(index: number): HTMLElement, estimate: number, label: string, left: AbortSignal }} options
 * @returns {VirtualList} */
function virtualList({ count, render, estimate, label, left }) {
  const items = h("div.virtual-items", { role: "presentation" });
  const inner = h("div.virtual-inner", { role: "presentation" }, items);
  const element = h("div.virtual", { role: "list", tabindex: "0", label: label }, inner);
  const guess = () => Math.min(estimate, TALLEST / Math.max(count, 1));
  let heights = heightsOf(count, guess());
  /** Items that are there. @type {Map<number, HTMLElement>} */
  const drawn = new Map();
  /** What stays where it is: an item, and how far its begin is above the view's. */
  let anchor = { index: 0, above: 0 };
  /** A place that was asked for, until somebody scrolls. @type {number | null} */
  let wanted = null;

  const sizes = new ResizeObserver((entries) => {
    let changed = false;
    for (const { target } of entries) {
      if (target === element || !(target instanceof HTMLElement) || !target.isConnected) continue;
      changed = heights.set(Number(target.dataset.index), target.offsetHeight) || changed;
    }
    if (changed || entries.some(({ target }) => target === element)) settle();
  });
  sizes.observe(element);

  /** Keep the anchor where it is with the heights as they are known now, and draw. @param {number} [again] */
  function settle(again = 0) {
    if (left.aborted || !element.clientHeight) return;
    inner.style.height = `${heights.above(count)}px`;
    const top = wanted === null ? heights.above(anchor.index) + anchor.above : heights.above(wanted);
    if (Math.abs(element.scrollTop - top) >= 1) element.scrollTop = top;
    draw(again);
  }
  function scrolled() {
    const { scrollTop } = element;
    const index = heights.at(scrollTop);
    anchor = { index, above: scrollTop - heights.above(index) };
    draw();
  }
  /** @param {number} [again] how often what was measured has moved it */
  function draw(again = 0) {
    if (!element.clientHeight || left.aborted) return;
    const { scrollTop, clientHeight } = element;
    const from = heights.at(Math.max(scrollTop - BEYOND, 0));
    const to = count ? Math.min(heights.at(scrollTop + clientHeight + BEYOND) + 1, count) : 0;
    for (const [index, node] of drawn) {
      if (index >= from && index < to) continue;
      sizes.unobserve(node);
      node.remove();
      drawn.delete(index);
    }
    let changed = false;
    for (let index = from; index < to; index++) {
      if (drawn.has(index)) continue;
      const node = item(index);
      drawn.set(index, node);
      items.insertBefore(node, [...items.children].find((each) => Number(/** @type {HTMLElement} */ (each).dataset.index) > index) ?? null);
      changed = true;
    }
    items.style.top = `${heights.above(from)}px`;
    if (!changed) return;
    // Measured at once, so that nothing is painted where it does not stay.
    let moved = false;
    for (const [index, node] of drawn) moved = heights.set(index, node.offsetHeight) || moved;
    // At once and not in the next frame, before which it would be painted in the wrong place.
    if (moved && again < 5) settle(again + 1);
  }
  /** @param {number} index */
  function item(index) {
    const node = h("div.virtual-item", { role: "listitem", "aria-posinset": index + 1, "aria-setsize": count, "data-index": index }, render(index));
    sizes.observe(node);
    return node;
  }
  function clearDrawn() {
    for (const node of drawn.values()) sizes.unobserve(node);
    drawn.clear();
    items.replaceChildren();
  }

  element.addEventListener("scroll", scrolled, { passive: true });
  for (const each of ["wheel", "pointerdown", "touchmove"]) {
    element.addEventListener(each, () => (wanted = null), { passive: true });
  }
  element.addEventListener("keydown", (event) => {
    // The browser would stop where it guesses the end.
    wanted = event.key === "End" && event.target === element ? count : null;
    if (wanted === null) return;
    event.preventDefault();
    settle();
  });
  left.addEventListener("abort", () => sizes.disconnect());
  return {
    element,
    first: () => heights.at(element.scrollTop),
    scrollTo(index) {
      wanted = within(index, 0, Math.max(count - 1, 0));
      anchor = { index: wanted, above: 0 };
      element.scrollIntoView({ block: "nearest" });
      settle();
    },
    refresh() {
      const focused = items.contains(document.activeElement);
      const key = focused ? focusKey() : null;
      clearDrawn();
      settle();
      if (key) refocus(key);
    },
    setCount(now) {
      count = now;
      heights = heightsOf(count, guess());
      clearDrawn();
      if (anchor.index >= count) anchor = { index: 0, above: 0 };
      wanted = null;
      settle();
    },
  };
}
