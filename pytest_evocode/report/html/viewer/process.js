/** How agents worked: the seven pillars by row, with coverage and intervals, and each value down to its evidence. */

/** In the order of the formula, with their names and weights in the RigorScore as published.
 * @type {{[pillar: string]: [string, number]}} */
const PILLAR_NAMES = {
  pf: ["Planning fidelity", 0.15], vc: ["Verification coverage", 0.15], re: ["Recovery efficiency", 0.2],
  aq: ["Abstention quality", 0.1], ati: ["Atomic transition integrity", 0.1], tad: ["Test assertion density", 0.2],
  ee: ["Exploration efficiency", 0.1],
};

definePage("process", "Process", (main, place, left) => {
  heading(main, "Process");
  const rows = report.rows.filter((row) => row.process);
  if (!rows.length) {
    main.append(
      empty("How the agents worked was not scored.", "Run this command, or sessions with --evocode-process, then write the report again."),
      commandLine(`evocode process ${quoted(report.directories[0] ?? "evocode-results")}`));
    return;
  }
  const row = rows.find((each) => each.id === place.settings.row) ?? /** @type {Row} */ (rows[0]);
  main.append(
    h("p", "Pillars are from 0 to 1, the RigorScore is their weighted mean from 0 to 100. Scores over different pillars cannot be compared."),
    pillarTable(rows),
    h("p.quiet", `Scored: ${rows.length} of ${counted(report.rows.length, "row")}.`),
    h("div.controls", select({
      label: "Row", value: row.id, choices: rows.map((each) => [each.id, each.name]),
      change: (id) => setSettings({ row: id, attempt: null, pillar: null }),
    })),
    pillarChart(row),
    evidenceSection(row, place, left),
    outcomeSection(rows));
});

/** @param {number | null} share 0 to 1 */
const percent = (share) => (share === null ? UNKNOWN : `${score(100 * share, 0)} %`);

/** @param {Row[]} rows */
const pillarTable = (rows) => h("div.process-table", table({
  caption: "Value with its 95 % interval, and the share of rounds in which it was measured",
  columns: [
    textColumn("Agent", (row) => row.name),
    { title: "RigorScore", number: integer, value: (row) => row.process?.score ?? null, cell: (row) => measured(row.process?.score ?? null, row.process?.interval, 100, `of ${integer(row.process?.rounds)} rounds`) },
    ...entries(PILLAR_NAMES).map(([pillar, [name, weight]]) => ({
      title: pillar.toUpperCase(), help: `${name}, weight ${weight}`, number: score,
      value: (/** @type {Row} */ row) => row.process?.pillars[pillar]?.value ?? null,
      cell: (/** @type {Row} */ row) => {
        const found = row.process?.pillars[pillar];
        return found && found.value !== null ? measured(found.value, found.interval, 1, percent(found.coverage)) : "n/a";
      },
    })),
  ],
  items: rows,
  open: (row) => here({ row: row.id }),
}));

/** @param {number | null} value @param {Interval | null | undefined} interval @param {number} high @param {string} beside */
function measured(value, interval, high, beside) {
  const digits = high === 1 ? 2 : 1;
  return [score(value, digits), intervalBar(value, interval, 0, high, "Value"), h("small", beside)];
}

/** @param {Row} row */
const pillarChart = (row) => barChart(`Pillars of ${row.name}`, entries(PILLAR_NAMES).map(([pillar, [name]]) => {
  const { value = null, interval = null, coverage = 0 } = row.process?.pillars[pillar] ?? {};
  return {
    label: `${pillar.toUpperCase()} ${name}`, value, interval,
    note: value === null ? "not measured" : `measured in ${percent(coverage)} of rounds`,
    href: here({ row: row.id, pillar }),
  };
}));

/** @param {Row} row @param {Place} place @param {AbortSignal} left */
function evidenceSection(row, place, left) {
  const attempts = report.attempts.filter((each) => each.row === row.id);
  const attempt = attempts.find((each) => each.id === place.settings.attempt) ?? attempts[0];
  const section = h("section", h("h2", "Evidence"));
  if (!attempt) {
    section.append(empty("This row has no attempts in the report.", "Write the report again with its results."));
    return section;
  }
  const pillar = Object.hasOwn(PILLAR_NAMES, place.settings.pillar ?? "") ? /** @type {string} */ (place.settings.pillar) : "pf";
  section.append(
    h("div.controls", select({
        label: "Attempt", value: attempt.id, choices: attempts.map((each) => [each.id, `${each.task}, attempt ${each.attempt}`]),
        change: (id) => setSettings({ row: row.id, attempt: id, pillar }),
      }),
      select({
        label: "Pillar", value: pillar, choices: entries(PILLAR_NAMES).map(([key, [name]]) => [key, `${key.toUpperCase()} ${name}`]),
        change: (key) => setSettings({ row: row.id, attempt: attempt.id, pillar: key }),
      })),
    waitingPart(load(`attempts/${attempt.id}`), left, (data) => pillarOfRounds(data, pillar)));
  return section;
}

/** @param {AttemptData} attempt @param {string} pillar */
function pillarOfRounds(attempt, pillar) {
  const scored = attempt.rounds.filter((round) => round.process);
  if (!scored.length) return empty("No round of this attempt was scored.", "It has no recordings, or evocode process did not reach it.");
  return h("div", scored.map((round, place) => {
    const found = round.process?.pillars[pillar];
    const step = (/** @type {number} */ number) => link("trajectory", [attempt.id, round.index], { step: number });
    const measures = entries(found?.measures ?? {}).map(([measure, value]) => ({ pillar, measure, value }));
    return h("details", { open: place === 0 },
      h("summary", `Round ${round.index}: ${measureValue(found?.value)} `, measuresInShort(measures)),
      h("p", anchor(link("round", [attempt.id, round.index], { tab: "process" }), "All values of this round"),
        !round.process?.edited && ". Nothing was changed in this round, so it has no RigorScore."),
      measures.length ? measures.map((each) => measureView(each, "", step)) : h("p", "Not measured in this round."));
  }));
}

/** @param {Row[]} rows */
function outcomeSection(rows) {
  const found = report.process_outcome;
  const points = rows.flatMap((row) => {
    const [x, y] = [row.process?.score ?? null, row.scores.case_score];
    return x === null || y === null ? [] : [{ x, y, label: row.name, mark: false, href: link("process", [], { row: row.id }) }];
  });
  return h("section", h("h2", "Process and outcome"),
    found && found.r !== null
      ? h("p", "Correlation of the RigorScore with the share of passed cases: ", h("strong", `r = ${score(found.r, 2)}`), `${rangeText(found.interval, 2)}, n = ${integer(found.n)}. `, named(found.note))
      : h("p", `The correlation of process and outcome cannot be computed${found?.note ? `: ${found.note}` : ": too few were measured in both"}.`),
    points.length > 1 && scatterChart({ title: "RigorScore and Case Score by row", x: "RigorScore", y: "Case Score", points }));
}
