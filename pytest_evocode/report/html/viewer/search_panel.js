// The search of a trajectory: its form, how far it is, and the list of what was found.

/** @param {TrajectoryParts} parts @param {AbortSignal} left
 * @param {{ query: string, regular: boolean, changed(query: string, regular: boolean): void, show(hit: StepHit): void,
 *   drawn(): void }} options */
function searchPanel(parts, left, options) {
  const box = h("input", { type: "search", value: options.query });
  const regular = h("input", { type: "checkbox", checked: options.regular });
  const status = h("span", { role: "status" });
  const panel = h("details.hits", { hidden: true, open: true }, h("summary", "Hits"));
  /** @type {StepHit[]} */
  let hits = [];
  let chosen = -1;
  let whole = "";
  /** @type {RegExp | null} */
  let pattern = null;
  /** @type {AbortController | null} */
  let running = null;
  const list = virtualList({
    count: 0,
    estimate: 28,
    label: "Hits of the search",
    left,
    render(index) {
      const hit = hits[index];
      return h(
        "div",
        hit &&
          h(
            "button.hit",
            { "aria-current": index === chosen ? "true" : null, onclick: () => choose(index) },
            h("b", `${hit.step} ${hit.field}`),
            " ",
            hitExcerpt(hit),
          ),
      );
    },
  });
  panel.append(list.element);
  left.addEventListener("abort", () => running?.abort());

  /** @param {number} index */
  function choose(index) {
    const hit = hits[index];
    if (!hit) return;
    chosen = index;
    say();
    list.refresh();
    options.show(hit);
  }
  function say() {
    status.textContent = chosen < 0 ? whole : `${integer(chosen + 1)} of ${whole}`;
  }
  /** @param {1 | -1} direction */
  function step(direction) {
    if (!hits.length) return;
    choose(cycled(chosen, hits.length, direction));
  }
  /** @param {boolean} [jump] whether to go to the first hit */
  function start(jump = false) {
    running?.abort();
    running = new AbortController();
    hits = [];
    chosen = -1;
    pattern = null;
    whole = "";
    const query = box.value;
    const made = query ? searchPattern(query, regular.checked) : "";
    if (typeof made === "string") whole = made;
    else pattern = made;
    panel.hidden = !pattern;
    list.setCount(0);
    options.drawn();
    say();
    if (typeof made === "string") return;
    const { signal } = running;
    let drawn = 0;
    let listed = 0;
    searchSteps(parts, made, query, {
      regular: regular.checked,
      stop: signal,
      progress(found, count, share) {
        if (signal.aborted) return;
        // A list that grows with every slice would cost more than the search itself.
        if (share < 1 && hits.length && performance.now() - drawn < 200) return;
        drawn = performance.now();
        const grown = found.length !== listed;
        listed = found.length;
        hits = found;
        const more = count > found.length ? ` (the first ${integer(found.length)} are listed)` : "";
        whole = `${integer(count)} ${count === 1 ? "hit" : "hits"}${more}${share < 1 ? `, ${Math.floor(share * 100)} % searched` : ""}`;
        say();
        if (grown) list.setCount(listed);
        if (jump && chosen < 0 && listed) choose(0);
      },
    }).catch((error) => {
      if (signal.aborted) return;
      pattern = null;
      whole = messageOf(error);
      options.drawn();
      say();
    });
  }
  const form = h("form.tools.step-search",
    {
      role: "search",
      onsubmit(event) {
        event.preventDefault();
        // Enter once more goes on to the next hit.
        if (pattern && hits.length && box.value === options.query && regular.checked === options.regular) return step(1);
        options.query = box.value;
        options.regular = regular.checked;
        options.changed(box.value, regular.checked);
        start(true);
      },
    },
    h("label.field", h("span", "Search"), box),
    h("label", regular, " regular expression"),
    h("button", { type: "submit" }, "Search"),
    iconButton("‹", "Previous hit", "N", () => step(-1)),
    iconButton("›", "Next hit", "n", () => step(1)),
    status);
  return { form, list: panel, go: step, pattern: () => pattern, start };
}
