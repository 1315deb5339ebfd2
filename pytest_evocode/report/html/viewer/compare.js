/** Two rows against each other: paired differences, rounds that only one of them passes, and where they part. */

/** @typedef {{first: Row, second: Row}} RowPair */
/** A task at which both were measured, and the first round at which they part.
 * @typedef {{task: TaskSummary, first: AttemptSummary[], second: AttemptSummary[], parts: number | null}} TaskPair */

definePage({ name: "compare", title: "Compare", show: showCompare });

/** @param {HTMLElement} main @param {Place} place @param {AbortSignal} left */
async function showCompare(main, place, left) {
  heading(main, "Compare");
  if (report.index.attempts.length < 2) {
    main.append(empty("There are no two attempts to compare.", "Run a second agent, or the same one again, and write the report with both results."));
    return;
  }
  const pair = comparedRows(place);
  main.append(rowChoice(place, pair));
  if (pair) {
    const why = whyNotCompared(pair);
    if (why) main.append(note("info", why));
    else main.append(h("section", { "aria-busy": "true" }));
  }
  const section = main.querySelector("[aria-busy]");
  if (pair && section) {
    const comparisons = await load("comparisons");
    if (left.aborted) return;
    section.removeAttribute("aria-busy");
    section.append(...pairSections(pair, comparisons, place));
  }
  const tasks = pair ? taskPairs(pair) : [];
  if (pair && tasks.length) main.append(taskSection(pair, tasks, place, left));
  main.append(sideBySide(place, pair, tasks, left));
}

/** The rows of the place; without any the first two that can be compared. @param {Place} place @returns {RowPair | null} */
function comparedRows(place) {
  const rows = report.index.rows;
  const first = report.row(place.settings.first) ?? rows[0];
  const second = report.row(place.settings.second)
    ?? rows.find((row) => row !== first && row.ranking === first.ranking) ?? rows.find((row) => row !== first) ?? first;
  return first ? { first, second } : null;
}

/** @param {Place} place @param {RowPair | null} pair */
function rowChoice(place, pair) {
  if (!pair) return h("p", "No attempt counts in a row. Choose two attempts below.");
  /** @type {[string, string][]} */
  const choices = report.index.rows.map((row) => [row.id, row.name]);
  // A round of an attempt belongs to the rows that were chosen with it.
  const others = { a: null, b: null, round: null };
  return h("div.controls.compare-rows", select({ label: "First", value: pair.first.id, choices, change: (first) => setSettings({ ...others, first, second: pair.second.id }) }),
    h("button", { onclick: () => setSettings({ ...others, first: pair.second.id, second: pair.first.id }) }, "Swap"),
    select({ label: "Second", value: pair.second.id, choices, change: (second) => setSettings({ ...others, first: pair.first.id, second }) }));
}

/** Why there are no differences; "" if there may be. @param {RowPair} pair */
function whyNotCompared({ first, second }) {
  if (first === second) return "Both sides are the same row. Choose another, or compare two of its attempts below.";
  return "";
}

/** @param {RowPair} pair @param {Comparisons} comparisons @param {Place} place @returns {(HTMLElement | string)[]} */
function pairSections({ first, second }, comparisons, place) {
  const found = comparisons.pairs.find((pair) => pair.first === first.id && pair.second === second.id);
  const reverse = comparisons.pairs.find((pair) => pair.first === second.id && pair.second === first.id);
  const pair = found ?? (reverse && turned(reverse));
  const apart = first.ranking !== second.ranking;
  if (!pair && apart) return [note("info", `${first.name} (${first.mode}) and ${second.name} (${second.mode}) are of different rankings: they were measured in different ways, so a difference of scores would say nothing about the agents. Their attempts can be looked at below.`)];
  if (!pair) return [note("info", `There is no comparison of these two rows. ${comparisons.note}`)];
  const missing = [...lackOf(pair.only_first, second), ...lackOf(pair.only_second, first)];
  return [
    h("h2", "Differences"),
    apart ? note("info", "The two were not run over the same rounds of the same tasks. Compared is what both were run over.") : "",
    ...missing.map((text) => note("warning", text)),
    pair.same_attempts ? "" : note("warning", "The two do not have equally many attempts at each round, so scores of the best attempt, such as MT@k, are not compared."),
    differenceTable(pair.differences, first, second),
    h("h2", "Flips"),
    h("p", `Rounds that one side passes in more than half of its attempts and the other does not: ${pair.flips.length}. `,
      `Sign test over rounds: ${pText(pair.flips_p_value)}; `,
      pair.flips_by_task_p_value === null ? "too few tasks for a test over tasks." : `over tasks: ${pText(pair.flips_by_task_p_value)}. Rounds of a task hang together, so this is the one to go by.`),
    flipTable(pair.flips, first, second, place),
  ];
}

/** @param {string[]} tasks @param {Row} row */
const lackOf = (tasks, row) =>
  tasks.length ? [`Not compared, because ${row.name} has no attempt at them: ${tasks.join(", ")}.`] : [];

/** The same pair seen from the other side. @param {Comparisons["pairs"][number]} pair @returns {Comparisons["pairs"][number]} */
function turned(pair) {
  const turn = (/** @type {Interval | null} */ interval) => interval && { low: -interval.high, high: -interval.low };
  return {
    ...pair,
    first: pair.second, second: pair.first, only_first: pair.only_second, only_second: pair.only_first,
    differences: pair.differences.map((each) => ({
      ...each, first: each.second, second: each.first, difference: -each.difference, interval: turn(each.interval), won: each.lost, lost: each.won,
    })),
    flips: pair.flips.map((flip) => ({ ...flip, first: flip.second, second: flip.first })),
  };
}

/** @param {number | null} value */
const pValue = (value) => value === null ? "–" : value < 0.001 ? "< 0.001" : value.toFixed(3);

/** @param {number} value */
const pText = (value) => value < 0.001 ? "p < 0.001" : `p = ${pValue(value)}`;

/** @param {number} value */
const signed = (value, digits = 1) => `${value > 0 ? "+" : ""}${score(value, digits)}`;

/** @param {Difference[]} differences @param {Row} first @param {Row} second */
function differenceTable(differences, first, second) {
  if (!differences.length) return empty("No score was measured for both.", "Compare rows that have a task in common.");
  const heads = ["Score", first.name, second.name, "Difference", "95 % interval", "p", "Won, lost, tied", "Tasks"];
  return h("div.wide", h("table.compare-differences", h("caption", `${second.name} minus ${first.name}, paired by task`),
    h("thead", h("tr", heads.map((head, place) => h("th", { scope: "col", class: place ? "number" : "" }, named(head))))),
    h("tbody", differences.map(differenceRow))));
}

/** @param {Difference} each */
function differenceRow(each) {
  const title = report.index.titles[each.field];
  const small = title?.unit === "0-1";
  const digits = small ? 3 : 1;
  const half = small ? 1 : 100;
  const sure = each.interval !== null && (each.interval.low > 0 || each.interval.high < 0);
  const interval = each.interval && `${signed(each.interval.low, digits)} to ${signed(each.interval.high, digits)}`;
  return h("tr", h("th", { scope: "row", title: title?.help }, title?.title ?? each.field),
    h("td.number", score(each.first, digits)),
    h("td.number", score(each.second, digits)),
    h("td.number", sure ? h("strong", signed(each.difference, digits)) : signed(each.difference, digits)),
    h("td.number", interval ? [intervalBar(each.difference, each.interval, -half, half, interval), " ", interval] : "–"),
    h("td.number", pValue(each.p_value)),
    h("td.number", `${integer(each.won)}, ${integer(each.lost)}, ${integer(each.tied)}`),
    h("td.number", integer(each.tasks)));
}

/** @param {Comparisons["pairs"][number]["flips"]} flips @param {Row} first @param {Row} second @param {Place} place */
const flipTable = (flips, first, second, place) => table({
  caption: "Rounds that flipped",
  columns: [
    { title: "Task", value: (flip) => flip.task, cell: (flip) => taskLink(flip.task) },
    { title: "Round", number: integer, value: (flip) => flip.round },
    { title: "Passed by", value: (flip) => (flip.first > flip.second ? first : second).name },
    { title: `Passed, ${first.name}`, number: percent, value: (flip) => flip.first },
    { title: `Passed, ${second.name}`, number: percent, value: (flip) => flip.second },
    {
      title: "Look", value: () => null,
      cell: (flip) => h("a", { href: lookAt(flip, place), "aria-label": `Round ${flip.round} of ${flip.task}, side by side` }, "Side by side"),
    },
  ],
  items: flips,
  open: (flip) => lookAt(flip, place),
  place,
  empty: "Neither side passes a round that the other fails.",
});

/** @param {string} name */
function taskLink(name) {
  const task = report.task(name);
  return task ? h("a", { href: link("task", [task.id]) }, named(name)) : named(name);
}

/** @param {{task: string, round: number}} flip @param {Place} place */
const lookAt = (flip, place) =>
  link("compare", [], { ...place.settings, task: report.task(flip.task)?.id ?? "", round: String(flip.round), a: null, b: null });

/** The tasks at which both rows have attempts. @param {RowPair} pair @returns {TaskPair[]} */
function taskPairs({ first, second }) {
  const pairs = [];
  for (const task of report.index.tasks) {
    const attempts = report.attemptsAt(task.name);
    const ours = attempts.filter((each) => each.row === first.id);
    const theirs = attempts.filter((each) => each.row === second.id);
    if (ours.length && theirs.length) pairs.push({ task, first: ours, second: theirs, parts: firstParting(ours, theirs) });
  }
  return pairs;
}

/** The first round that one side passes more often than the other. @param {AttemptSummary[]} first @param {AttemptSummary[]} second */
function firstParting(first, second) {
  if (first.length === 1 && second.length === 1 && first[0] === second[0]) return null;
  const rounds = Math.max(...[...first, ...second].map((each) => each.cells.length));
  for (let place = 0; place < rounds; place++) {
    const ours = passedShare(first, place);
    const theirs = passedShare(second, place);
    if (ours !== null && theirs !== null && ours !== theirs) return place + 1;
  }
  return null;
}

/** @param {AttemptSummary[]} attempts @param {number} place */
function passedShare(attempts, place) {
  const known = attempts.filter((each) => each.cells[place] && each.cells[place] !== "." && each.cells[place] !== "?");
  return known.length ? known.filter((each) => each.cells[place] === "p").length / known.length : null;
}

/** @param {RowPair} pair @param {TaskPair[]} tasks @param {Place} place @param {AbortSignal} left */
function taskSection({ first, second }, tasks, place, left) {
  const where = (/** @type {TaskPair} */ each) =>
    link("compare", [], { ...place.settings, task: each.task.id, round: String(each.parts ?? 1), a: null, b: null });
  const rounds = Math.max(...tasks.map((each) => each.task.rounds.length));
  return h("section", h("h2", "Where they part"),
    table({
      caption: "The first round of each task that one side passes more often than the other",
      columns: [
        { title: "Task", value: (each) => each.task.name, cell: (each) => taskLink(each.task.name) },
        { title: "First differing round", number: integer, value: (each) => each.parts, cell: (each) => h("a", { href: where(each) }, each.parts ?? "none") },
      ],
      items: tasks,
      open: where,
      place,
    }),
    cellGrid({
      caption: `Rounds of ${first.name} and ${second.name}, the first that differs is marked`,
      left,
      columns: Array.from({ length: rounds }, (_, column) => ({ label: String(column + 1) })),
      rows: tasks.flatMap((each) => [...each.first, ...each.second].map((attempt) => ({
        label: `${each.task.name}, ${attemptName(attempt)}`,
        href: link("attempt", [attempt.id]),
        cells: attempt.cells,
        hrefs: (/** @type {number} */ column) => link("round", [attempt.id, column + 1]),
        ...(each.parts === null ? {} : { first: each.parts - 1 }),
      }))),
    }),
    cellLegend(tasks.flatMap((each) => [...each.first, ...each.second]).map((each) => each.cells).join("")));
}
