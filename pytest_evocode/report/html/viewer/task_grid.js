/** Tasks x agents: how many rounds each row passes at each task. */

/** @param {Place} place */
function taskGridPart(place) {
  const rows = filteredRows(place);
  const dimension = dimensionOf(place);
  const { group } = place.settings;
  const tasks = report.tasks.filter((task) => !dimension || group === undefined || taskIsIn(task, dimension, group));
  if (!rows.length || !tasks.length) return null;
  /** @type {Column<TaskSummary>[]} */
  const columns = [
    { title: "Task", value: (task) => task.name },
    { title: "Rounds", number: integer, value: (task) => task.rounds.length },
  ];
  for (const row of rows) {
    columns.push({
      title: row.name, number: integer,
      value(task) {
        const { passed, of } = cellOf(task, row);
        return of ? passed / of : null;
      },
      cell: (task) => gridCell(task, row),
    });
  }
  return [
    h("h2", "Tasks and agents"),
    h("p.quiet", "Passed rounds, of all attempts that count. A cell leads to the task."),
    table({ caption: "Rounds passed at each task", columns, items: tasks, open: (task) => link("task", [task.id]), csv: "csv/tasks.csv" }),
  ];
}

/** Rounds that were passed and selected, of a row's attempts at a task. @param {TaskSummary} task @param {Row} row */
function cellOf(task, row) {
  const attempts = report.attemptsAt(task.name).filter((one) => one.row === row.id);
  const cells = attempts.map((one) => one.cells.replaceAll(".", "")).join("");
  return { attempts, of: cells.length, passed: cells.split("p").length - 1 };
}

/** @param {TaskSummary} task @param {Row} row @returns {Child} */
function gridCell(task, row) {
  const { attempts, passed, of } = cellOf(task, row);
  if (!attempts[0]) return UNKNOWN;
  const firsts = attempts.slice(0, 5).map(({ attempt, cells }) => `#${attempt} fails ${firstFailure(cells) ? `first in round ${firstFailure(cells)}` : "none"}`);
  const title = `${row.name} at ${task.name}: ${firsts.join(", ")}${attempts.length > 5 ? ", …" : ""}`;
  return h("a.share-link", { href: link("task", [task.id], { attempt: attempts[0].id }), title }, shareCell(of ? (100 * passed) / of : null, `${integer(passed)}/${integer(of)}`));
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
