/** Two rows against each other: paired differences, rounds that only one of them passes, and where they part. */

/** @typedef {{first: Row, second: Row}} RowPair */
/** A task at which both were measured, and the first round at which they part.
 * @typedef {{task: TaskSummary, first: AttemptSummary[], second: AttemptSummary[], parts: number | null}} TaskPair */

definePage("compare", "Compare", showCompare);

/** @param {HTMLElement} main @param {Place} place @param {AbortSignal} left */
function showCompare(main, place, left) {
  heading(main, "Compare");
  if (report.attempts.length < 2) {
    main.append(empty("There are no two attempts to compare.", "Run a second agent, and write the report with both results."));
    return;
  }
  const pair = comparedRows(place);
  if (!pair) main.append(h("p", "No attempt counts in a row. Choose two attempts below."), sideBySide(place, null, [], left));
  else {
    const tasks = taskPairs(pair);
    appendAll(main, [
      rowChoice(pair),
      waitingPart(load("comparisons"), left, (comparisons) => pairSections(pair, comparisons)),
      tasks.length > 0 && taskSection(pair, tasks, left),
      sideBySide(place, pair, tasks, left),
    ]);
  }
}

/** The rows of the place; without any the first two that can be compared. @param {Place} place @returns {RowPair | null} */
function comparedRows({ settings }) {
  const { rows } = report;
  const first = report.row(settings.first) ?? rows[0];
  const others = rows.filter((row) => row !== first);
  const second = report.row(settings.second) ?? others.find((row) => row.ranking === first?.ranking) ?? others[0] ?? first;
  return first && second ? { first, second } : null;
}

/** @param {RowPair} pair */
function rowChoice({ first, second }) {
  const choices = report.rows.map((row) => /** @type {[string, string]} */ ([row.id, row.name]));
  /** A round of an attempt belongs to the rows that were chosen with it. @param {string} one @param {string} other */
  const choose = (one, other) => setSettings({ first: one, second: other, a: null, b: null, round: null });
  return h("div.controls.compare-rows",
    select({ label: "First", value: first.id, choices, change: (id) => choose(id, second.id) }),
    h("button", { onclick: () => choose(second.id, first.id) }, "Swap"),
    select({ label: "Second", value: second.id, choices, change: (id) => choose(first.id, id) }));
}

/** @param {RowPair} pair @param {Comparisons} comparisons @returns {Child} */
function pairSections({ first, second }, { pairs, note: why }) {
  if (first === second) return note("info", "Both sides are the same row. Choose another, or two of its attempts below.");
  const reverse = pairs.find((pair) => pair.first === second.id && pair.second === first.id);
  const pair = pairs.find((each) => each.first === first.id && each.second === second.id) ?? (reverse && turned(reverse));
  const apart = first.ranking !== second.ranking;
  if (!pair) {
    return note("info", apart
      ? `${first.name} (${first.mode}) and ${second.name} (${second.mode}) are of different rankings: they were measured in different ways, so a difference would say nothing about the agents. Compare attempts below.`
      : `There is no comparison of these two rows. ${why}`);
  }
  const { flips, flips_p_value: p, flips_by_task_p_value: byTask } = pair;
  return [
    h("h2", "Differences"),
    apart && note("info", "The two did not run the same rounds. Compared are those that both ran."),
    lackOf(pair.only_first, second),
    lackOf(pair.only_second, first),
    !pair.same_attempts && note("warning", "The two have different numbers of attempts, so scores of the best attempt, such as MT@k, are not compared."),
    differenceTable(pair.differences, first, second),
    h("h2", "Flips"),
    h("p", `Rounds that one side passes in more than half of its attempts and the other does not: ${flips.length}. Sign test over rounds: ${pText(p)}; `,
      byTask === null ? "too few tasks for a test over tasks." : `over tasks: ${pText(byTask)}. Go by this one, as rounds of a task depend on each other.`),
    flipTable(flips, first, second),
  ];
}

/** @param {string[]} tasks @param {Row} row */
const lackOf = (tasks, row) => tasks.length > 0 && note("warning", `Not compared, because ${row.name} has no attempt at them: ${tasks.join(", ")}.`);

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
const signed = (value) => `${value > 0 ? "+" : ""}${score(value)}`;

/** @param {Difference[]} differences @param {Row} first @param {Row} second */
const differenceTable = (differences, first, second) => differences.length
  ? plainTable(`${second.name} minus ${first.name}, paired by task`,
    ["Score", first.name, second.name, "Difference", "95 % interval", "p", "Won, lost, tied", "Tasks"], differences.map(differenceRow))
  : empty("No score was measured for both.", "Compare rows that have a task in common.");

/** @param {Difference} each */
function differenceRow({ field, first, second, difference, interval, p_value: p, won, lost, tied, tasks }) {
  const sure = interval && (interval.low > 0 || interval.high < 0);
  const range = interval && `${signed(interval.low)} to ${signed(interval.high)}`;
  return [
    h("span", { title: helpOf(field) }, titleOf(field)), score(first), score(second),
    h(sure ? "strong" : "span", signed(difference)),
    range ? [intervalBar(difference, interval, -100, 100, range), " ", range] : UNKNOWN,
    pValue(p), [won, lost, tied].map(integer).join(", "), integer(tasks),
  ];
}

/** @param {Comparisons["pairs"][number]["flips"]} flips @param {Row} first @param {Row} second */
const flipTable = (flips, first, second) => table({
  caption: "Rounds that flipped",
  columns: [
    { title: "Task", value: (flip) => flip.task, cell: (flip) => taskLink(flip.task) },
    countColumn("Round", (flip) => flip.round),
    textColumn("Passed by", (flip) => (flip.first > flip.second ? first : second).name),
    { title: `Passed, ${first.name}`, number: percent, value: (flip) => flip.first },
    { title: `Passed, ${second.name}`, number: percent, value: (flip) => flip.second },
    {
      title: "Look", value: () => null,
      cell: (flip) => h("a", { href: lookAt(flip), label: `Round ${flip.round} of ${flip.task}, side by side` }, "Side by side"),
    },
  ],
  items: flips,
  open: (flip) => lookAt(flip),
  empty: "Neither side passes a round that the other fails.",
});

/** @param {string} name */
function taskLink(name) {
  const task = report.task(name);
  return task ? anchor(link("task", [task.id]), named(name)) : named(name);
}

/** @param {{task: string, round: number}} flip */
const lookAt = (flip) =>
  here({ task: report.task(flip.task)?.id ?? "", round: flip.round, a: null, b: null });

/** The tasks at which both rows have attempts. @param {RowPair} pair @returns {TaskPair[]} */
function taskPairs({ first, second }) {
  const pairs = [];
  for (const task of report.tasks) {
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
  const known = attempts.filter((each) => /[^.?u]/.test(each.cells[place] ?? ""));
  return known.length ? known.filter((each) => each.cells[place] === "p").length / known.length : null;
}

/** @param {RowPair} pair @param {TaskPair[]} tasks @param {AbortSignal} left */
function taskSection({ first, second }, tasks, left) {
  const attempts = tasks.flatMap((each) => [...each.first, ...each.second]);
  const parts = new Map(tasks.map((each) => [each.task.name, each.parts]));
  return h("section",
    h("h2", "Where they part"),
    table({
      caption: "The first round of each task at which they differ",
      columns: [
        { title: "Task", value: (each) => each.task.name, cell: (each) => taskLink(each.task.name) },
        {
          title: "First differing round", number: integer, value: (each) => each.parts,
          cell: (each) => anchor(lookAt({ task: each.task.name, round: each.parts ?? 1 }), each.parts ?? "none"),
        },
      ],
      items: tasks,
      open: (each) => lookAt({ task: each.task.name, round: each.parts ?? 1 }),
    }),
    attemptGrid(`Rounds of ${first.name} and ${second.name}, the first that differs is marked`, attempts, left,
      (one) => `${one.task}, ${attemptLabel(one)}`, (one) => parts.get(one.task) ?? 0));
}
