/** The overview: how agents score, what that cost, where they fail, and what the numbers leave out. */

definePage("overview", "Overview", (main, place, left) => {
  heading(main, report.title);
  main.append(overviewFacts());
  if (report.under_way) main.append(note("info", "A session is still writing these results. Reload the page for news."));
  if (!report.rows.length) {
    main.append(empty("No attempt has a score yet.", "Run one, such as: pytest --evocode-agent=oracle TASKS; then write the report again."), h("div", leftOutPart()));
    return;
  }
  if (report.notes.length) main.append(note("info", unfolding("details", "Before you compare", report.notes.join("").length < 300, () => longList(report.notes, (text) => named(text, 1000)))));
  main.append(h("div", overviewFilter()));
  return { update: showSections(main, [
    { uses: ["by", "group"], make: groupControls },
    { uses: [...ROW_FILTERS, "by", "group", "score", "columns"], make: leaderboardPart },
    { uses: ["row"], make: (now) => rowPart(now, left) },
    { uses: [...ROW_FILTERS, "by", "group", "chart", "of"], make: spendingPart },
    { uses: [...ROW_FILTERS, "by", "group"], make: taskGridPart },
    { uses: ROW_FILTERS, make: survivalPart },
    { uses: ROW_FILTERS, make: failuresPart },
    { uses: [], make: leftOutPart },
  ], place) };
});

/** The settings that say which rows are shown. */
const ROW_FILTERS = ["q", "mode", "harness"];
const NO_HARNESS = "not known";

function overviewFacts() {
  const rounds = report.tasks.reduce((sum, task) => sum + task.rounds.length, 0);
  const uncounted = report.attempts.filter((one) => one.left_out).length;
  const rest = uncounted ? ` that count (${integer(uncounted)} more, which do not, are below)` : "";
  return h("p.quiet", `${counted(report.rows.length, "row")} of agents, `, anchor(link("task"), counted(report.tasks.length, "task")),
    ` with ${counted(rounds, "round")}, ${counted(report.attempts.length - uncounted, "attempt")}${rest}, `,
    anchor(link("runs"), counted(report.runs.length, "run")), ".");
}

function overviewFilter() {
  const { rows } = report;
  const modes = [...new Set(rows.map((row) => row.mode))].sort();
  const harnesses = [...new Set(rows.map((row) => row.harness || NO_HARNESS))].sort();
  if (rows.length < 2) return null;
  return h("div.controls", settingSearch("Filter agents", "q"),
    modes.length > 1 && settingSelect("Mode", "mode", [["", "all"], ...modes.map(same)]),
    harnesses.length > 1 && settingSelect("Harness", "harness", [["", "all"], ...harnesses.map(same)]));
}

/** @param {string} text @returns {[string, string]} */
const same = (text) => [text, text];

/** The rows that the filters leave.
 * @param {Place} place */
function filteredRows({ settings }) {
  const has = wordSearch(settings.q);
  return report.rows.filter((row) => {
    return (!settings.mode || row.mode === settings.mode)
      && (!settings.harness || (row.harness || NO_HARNESS) === settings.harness)
      && has(`${row.name} ${row.agent} ${row.harness} ${row.environment} ${row.mode}`);
  });
}

/** How many rounds of how many tasks are passed, of the rows that are shown, as lines.
 * @param {Place} place */
function survivalPart(place) {
  const rows = filteredRows(place).filter((row) => row.survival.length > 1);
  if (!rows.length) return null;
  const lines = rows.slice(0, 12).map((row) => ({
    label: row.name,
    points: row.survival.filter(turnsThere).map((at) => ({
      x: at.round, y: at.of ? (100 * at.passed) / at.of : 0,
      note: `${score(at.passed)} of ${counted(at.of, "task")}${at.first_failures ? `; ${counted(at.first_failures, "attempt")} fail here first` : ""}`,
    })),
  }));
  return [
    h("h2", "Pass rate by round"),
    h("p.quiet", "Of the tasks that have so many rounds, the share that passes."),
    overAll(place),
    lineChart({ title: "Share of tasks that pass a round", x: "round", y: "passed, %", lines }),
    rows.length > 12 && h("p.quiet", `The first 12 of ${integer(rows.length)} rows. Filter agents to see others.`),
  ];
}

/** Whether a point of a line is needed: it differs from one of its neighbours. Ten thousand rounds have few that do.
 * @param {Row["survival"][number]} at @param {number} index @param {Row["survival"]} all */
function turnsThere(at, index, all) {
  const [before, after] = [all[index - 1], all[index + 1]];
  return !before || !after || [before, after].some((one) => one.passed !== at.passed || one.of !== at.of || one.first_failures !== at.first_failures);
}

/** Failed rounds follow a chosen group; of cases it is only known over all rounds.
 * @param {Place} place */
function failuresPart(place) {
  const rows = filteredRows(place);
  const rounds = failedRounds(place);
  const charts = [
    failuresChart("Failed rounds by what went wrong", rows, (row) => rounds.get(row.id) ?? {}),
    failuresChart("Failing cases by kind", rows, (row) => row.failures.cases, overAll(place)),
  ];
  return charts.some(Boolean) && [h("h2", "Why rounds failed"), charts];
}

/** @param {string} title @param {Row[]} rows @param {(row: Row) => { [kind: string]: number }} counts @param {Child} [remark] */
function failuresChart(title, rows, counts, remark) {
  const failing = rows.filter((row) => Object.values(counts(row)).some(Boolean));
  const parts = [...new Set(failing.flatMap((row) => Object.keys(counts(row)).filter((kind) => counts(row)[kind])))];
  const bars = failing.slice(0, 40).map((row) => ({ label: row.name, values: parts.map((kind) => own(counts(row), kind) ?? 0), href: rowLink(row.id) }));
  return bars.length > 0 && [
    remark,
    stackedBars({ title, parts, bars, format: integer }),
    failing.length > bars.length && h("p.quiet", `The first ${bars.length} of ${counted(failing.length, "row")}.`),
  ];
}

/** How many rounds of each row failed in which way. @param {Place} place */
function failedRounds(place) {
  /** @type {Map<string, { [kind: string]: number }>} */
  const found = new Map();
  for (const { row, task, cells } of report.attempts) {
    const counts = found.get(row) ?? {};
    found.set(row, counts);
    [...cells].forEach((cell, at) => {
      if (!"rncstbaio".includes(cell) || !roundIsIn(report.task(task), at, place)) return;
      const kind = cellName(cell).replace("failed, ", "");
      counts[kind] = (counts[kind] ?? 0) + 1;
    });
  }
  return found;
}

/** What charts say that do not follow a chosen group. @param {Place} place */
const overAll = (place) => dimensionOf(place) && place.settings.group !== undefined && h("p.quiet", "Over all rounds, not only the chosen group.");

/** What the scores leave out, and why. */
function leftOutPart() {
  const { rows, attempts, problems } = report;
  const missing = rows.flatMap((row) => row.missing.map((one) => ({ row, ...one })));
  const reasons = Map.groupBy(attempts.filter((one) => one.left_out), (one) => one.left_out);
  if (!missing.length && !reasons.size && !problems.length) return null;
  return h("section", h("h2", "What was left out, and why"),
    [...reasons].map(([reason, found]) => leftOut(reason, found, attemptAt)),
    leftOut("Attempts that were selected and left nothing", missing, (one) => [
      named(one.row.name), ` #${one.attempt} at `, named(one.task)]),
    leftOut("What could not be read or is gone", problems, (one) => named(one, 1000)));
}

/** @template T
 * @param {string} why @param {T[]} items @param {(item: T) => Child} shown */
const leftOut = (why, items, shown) => items.length > 0 && h("details", { open: items.length <= 5 },
  h("summary", named(why), ` (${integer(items.length)})`), longList(items, shown));
