/** One row of the leaderboard in full: what its scores rest on, why its rounds failed, and its attempts. */

/** @param {Place} place
 * @param {AbortSignal} left */
function rowPart(place, left) {
  if (!place.settings.row) return null;
  const row = report.row(place.settings.row);
  const close = h("button", { onclick: () => setSettings({ row: null }) }, "Close");
  if (!row) return h("section.panel", note("warning", "This report has no such row. "), close);
  const attempts = report.attempts.filter((one) => one.row === row.id);
  const title = goToPart(h("h2", named(row.name)), left);
  return h("section.panel", { label: "Row" },
    h("div.panel-head", title, close),
    facts([
      ["Agent", named(row.agent)], ["Mode", row.mode], ["From round", row.from_round && named(row.from_round)], ["Harness", named(row.harness || NO_HARNESS)],
      ["Environment", row.environment && named(row.environment)], ["Strict", yesNo(row.strict)],
      ["Over", `${counted(row.scores.rounds, "round")} of ${counted(row.scores.tasks, "task")}`], ["k", attemptsEach(row)],
    ]),
    MARKS.filter((mark) => mark.sign !== "i notes" && mark.count(row) > 0)
      .map((mark) => note("warning", h("strong", `${mark.sign} ${integer(mark.count(row))}`), ` ${mark.means}`)),
    row.notes.map((text) => note("info", named(text, 1000))),
    row.without_faults && withoutFaults(row, row.without_faults),
    failureKinds(row),
    attempts.length > 0 && [h("h3", "Attempts"), attemptGrid("Attempts and their rounds", attempts, left, (one) => `${one.task} #${one.attempt}`)]);
}

/** @param {Row} row @param {Partial<ScoreValues>} without */
function withoutFaults(row, without) {
  const fields = allScores().filter((field) => isKnown(without[field]) && isKnown(row.scores[field]));
  return fields.length > 0 && plainTable("Scores with and without rounds that have a fault", ["Score", "All rounds", "Without faults"],
    fields.map((field) => [titleOf(field), score(row.scores[field]), score(without[field])]));
}

/** @param {Row} row */
function failureKinds({ failures: { rounds, cases, not_reached: missed } }) {
  const kinds = [...new Set([...Object.keys(rounds), ...Object.keys(cases)])].filter((kind) => own(rounds, kind) || own(cases, kind));
  if (!kinds.length) return null;
  return plainTable("Failures by kind", ["Kind", "Rounds", "Cases"], [
    ...kinds.map((kind) => [kind === "cases" ? "failing cases" : named(kind), integer(own(rounds, kind) ?? 0), integer(own(cases, kind))]),
    ...(missed ? [["not reached", integer(missed), UNKNOWN]] : []),
  ]);
}

/** Attempts as lines of cells, a cell for each round, which leads to the round.
 * @param {string} caption @param {AttemptSummary[]} attempts @param {AbortSignal} left
 * @param {(attempt: AttemptSummary) => string} label @param {(attempt: AttemptSummary) => number} [marked] a round, or 0 */
function attemptGrid(caption, attempts, left, label, marked = (one) => firstFailure(one.cells)) {
  return [cellLegend(attempts.map((one) => one.cells).join("")), cellGrid({
    caption, left,
    columns: highest(attempts.map((one) => one.cells.length)),
    rows: attempts.map((one) => ({
      label: label(one), href: link("attempt", [one.id]), cells: one.cells, first: marked(one) - 1,
      titles: (/** @type {number} */ at) => cellTitle(one, at),
      hrefs: (/** @type {number} */ at) => link("round", [one.id, at + 1]),
    })),
  })];
}

/** @param {AttemptSummary} attempt @param {number} at */
function cellTitle({ task, cells, cases, trusts }, at) {
  const name = report.task(task)?.rounds[at];
  const [passed, of] = cases[at] ?? [0, 0];
  return [
    `round ${at + 1}${name ? ` (${name})` : ""}: ${cellName(cells[at])}`, of && `, ${passed} of ${of} cases passed`,
    firstFailure(cells) === at + 1 && "; the first failure", trusts.includes(at + 1) && "; trusts the agent's system",
  ].filter(Boolean).join("");
}
