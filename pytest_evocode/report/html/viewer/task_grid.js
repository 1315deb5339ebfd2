/** Tasks x agents: how many rounds each row passes at each task. */

/** @param {Place} place */
function taskGridPart(place) {
  const rows = filteredRows(place);
  const tasks = report.tasks.filter((task) => task.rounds.some((_, at) => roundIsIn(task, at, place)));
  if (!rows.length || !tasks.length) return null;
  /** @type {Column<TaskSummary>[]} */
  const columns = [
    textColumn("Task", (task) => task.name),
    countColumn("Rounds", (task) => task.rounds.length),
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

/** Rounds that were passed, and that count, of a row's attempts at a task. @param {TaskSummary} task @param {Row} row */
function cellOf(task, row) {
  const attempts = report.attemptsAt(task.name).filter((one) => one.row === row.id);
  const cells = attempts.map((one) => one.cells.replace(/[.u]/g, "")).join("");
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

/** Whether a round is in the group that is chosen, if any is. @param {TaskSummary | undefined} task @param {number} at @param {Place} place */
function roundIsIn(task, at, place) {
  const dimension = dimensionOf(place);
  const { group } = place.settings;
  if (!dimension || group === undefined || !task) return true;
  const its = group === "not given" ? "" : group;
  switch (dimension) {
    case "task": return task.name === group;
    case "round": return at + 1 === Number(group);
    case "change": return its ? Boolean(task.change_types[at]?.includes(its)) : !task.change_types[at]?.length;
    default: return task[dimension] === its;
  }
}
