// What a suite printed: lines with numbers, colours, and a search among them.

const SGR = /\x1b\[[0-9;:]*m/g;

/** Lines, each beginning with the colours that hold there, so that it can be drawn by itself. @param {string} text */
function colouredLines(text) {
  let held = "";
  return text.split(/\r?\n/).map((line) => {
    const shown = held + line;
    for (const [code] of line.matchAll(SGR)) {
      // Codes that never end would make each line longer than the one before.
      held = /\[0*m/.test(code) ? "" : (held + code).slice(-200);
    }
    return shown;
  });
}

/** @param {string} text @param {number} omitted characters that were left out @param {Place} place @param {AbortSignal} left */
function outputView(text, omitted, place, left) {
  if (!text) return empty("The suite printed nothing, or its output was not kept.", "See the verdict above for the cause.");
  const lines = colouredLines(text);
  /** @type {number[]} */
  let found = [];
  let chosen = -1;
  let line = Number(place.settings.line ?? 0) - 1;
  const status = h("span", { role: "status" });
  const box = h("input", { type: "search", value: place.settings.q, oninput: search });
  const list = virtualList({
    count: lines.length,
    estimate: 20,
    label: "Output of the suite by lines",
    left,
    render: (index) =>
      h(
        "div.line",
        { class: index === line && "selected" },
        h(
          "a.line-number",
          { href: link("round", place.path, { tab: "output", line: index + 1 }), label: `Line ${index + 1}` },
          String(index + 1),
        ),
        shownText(lines[index] ?? "", { tag: "span", ansi: true, limit: 2000 }),
      ),
  });
  function search() {
    const word = box.value.toLowerCase();
    chosen = -1;
    found = word ? lines.flatMap((each, index) => (each.replace(SGR, "").toLowerCase().includes(word) ? [index] : [])) : [];
    status.textContent = word ? counted(found.length, "line") : "";
  }
  /** @param {1 | -1} direction */
  function step(direction) {
    if (!found.length) return;
    chosen = cycled(chosen, found.length, direction);
    line = found[chosen] ?? 0;
    status.textContent = `${integer(chosen + 1)} of ${integer(found.length)} lines`;
    list.refresh();
    list.scrollTo(line);
  }
  search();
  if (line >= 0) requestAnimationFrame(() => list.scrollTo(line));
  return h("div.suite-output",
    h("form.tools",
      {
        role: "search",
        onsubmit(event) {
          event.preventDefault();
          setSettings({ q: box.value || null }, { replace: true, quiet: true });
          step(1);
        },
      },
      h("label.field", h("span", "Search the output"), box),
      h("button", { type: "submit" }, "Next"),
      h("button", { onclick: () => step(-1) }, "Previous"),
      status,
      copyButton(text, "Copy the output")),
    omitted > 0 && note("info", `${integer(omitted)} characters in the middle were left out here. The attempt's directory has all of it.`),
    list.element);
}
