/** Tasks x agents: how many rounds each row passes at each task. */

/** @param {Place} place */
function taskGridPart(place) {
  const rows = filteredRows(place);
  const dimension = dimensionOf(place);
  const { group } = place.settings;
  const tasks = report.index.tasks.filter((task) => !dimension || group === undefined || taskIsIn(task, dimension, group));
  if (!rows.length || !tasks.length) return null;
  const cells = taskCells();
  /** @param {TaskSummary} task @param {Row} row */
  const cell = (task, row) => cells.get(row.id)?.get(task.name);
  /** @type {Column<TaskSummary>[]} */
  const columns = [
    { id: "task", title: "Task", value: (task) => task.name, cell: (task) => h("a", { href: link("task", [task.id]) }, named(task.name)) },
    { id: "rounds", title: "Rounds", number: true, value: (task) => task.rounds.length },
  ];
  for (const row of rows) {
    columns.push({
      id: `at-${row.id}`, title: row.name, number: true,
      value: (task) => { const its = cell(task, row); return its?.of ? its.passed / its.of : null; },
      cell: (task) => { const its = cell(task, row); return its ? gridCell(task, row, its) : h("span.quiet", "–"); },
    });
  }
  return [
    h("h2", "Tasks and agents"),
    h("p.quiet", "Passed rounds, of all attempts that count. A cell leads to the task."),
    table({ caption: "Rounds passed at each task", columns, items: tasks, place, open: (task) => link("task", [task.id]), csv: "csv/tasks.csv" }),
  ];
}

/** @typedef {{passed: number, of: number, attempts: AttemptSummary[]}} GridCell */

/** By row and task; made once, as it goes through the cells of all attempts.
 * @type {Map<string, Map<string, GridCell>> | null} */
let madeTaskCells = null;

function taskCells() {
  if (madeTaskCells) return madeTaskCells;
  madeTaskCells = new Map();
  for (const attempt of report.index.attempts) {
    if (!attempt.row) continue;
    const ofRow = madeTaskCells.get(attempt.row) ?? new Map();
    madeTaskCells.set(attempt.row, ofRow);
    const cell = ofRow.get(attempt.task) ?? { passed: 0, of: 0, attempts: [] };
    ofRow.set(attempt.task, cell);
    const [passed, of] = roundsPassed(attempt);
    cell.passed += passed;
    cell.of += of;
    cell.attempts.push(attempt);
  }
  return madeTaskCells;
}

/** @param {TaskSummary} task @param {Row} row @param {GridCell} cell */
function gridCell(task, row, { passed, of, attempts }) {
  const firsts = attempts.map((one) => (firstFailure(one.cells) ? `#${one.attempt} fails first in round ${firstFailure(one.cells)}` : `#${one.attempt} fails none`));
  const title = `${row.name} at ${task.name}: ${firsts.slice(0, 5).join(", ")}${firsts.length > 5 ? ", …" : ""}`;
  return h("a.share-link", { href: link("task", [task.id], { attempt: attempts[0].id }), title },
    shareCell(of ? (100 * passed) / of : null, `${integer(passed)}/${integer(of)}`));
}

/** @param {TaskSummary} task @param {Dimension} dimension @param {string} group */
function taskIsIn(task, dimension, group) {
  const given = group !== "not given";
  switch (dimension) {
    case "task": return task.name === group;
    case "round": return task.rounds.length >= Number(group);
    case "change": return task.change_types.some((types) => (given ? types.includes(group) : !types.length));
    default: return task[dimension] === (given ? group : "");
  }
}
