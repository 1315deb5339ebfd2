/** A task: how agents go through its rounds, how its requirements and cases live, and what it asks for. */

/** @type {((place: Place) => void) | null} */
let updateTask = null;

definePage({
  name: "task",
  title: "Tasks",
  async show(main, place, left) {
    updateTask = null;
    if (!place.path.length) return showTasks(main, place);
    const task = report.index.tasks.find((each) => each.id === place.path[0]);
    if (!task) {
      heading(main, "No such task", [["Tasks", link("task")]]);
      main.append(empty("This report has no such task.", "Choose one in the list of tasks."));
      return;
    }
    heading(main, task.name, [["Tasks", link("task")]]);
    main.append(facts([
      ["Rounds", integer(task.rounds.length)], ["Activity", task.activity], ["Interaction", task.interaction],
      ["Category", task.category], ["Difficulty", task.difficulty],
    ]));
    const attempts = attemptsInOrder(task);
    main.append(h("div", roundsPart(attempts, left)));
    const waiting = main.appendChild(h("p", { role: "status" }, "Reading the task …"));
    /** @type {TaskData} */
    let data;
    try {
      data = await load(`tasks/${task.id}`);
    } catch (error) {
      waiting.replaceWith(note("error", messageOf(error)));
      return;
    }
    if (left.aborted) return;
    waiting.remove();
    if (data.note || !data.rounds) {
      main.append(note("warning", data.note ? named(data.note, 1000) : "This task is gone: what is known of it comes from records."));
    }
    const life = { task, data, attempts: attempts.filter((one) => data.attempts.some((each) => each.id === one.id)) };
    updateTask = showSections(main, [
      { uses: ["round"], make: (now) => instructionPart(data, now) },
      { uses: [], make: (now) => roundTable(data, now) },
      { uses: ["attempt"], make: (now) => requirementsPart(life, now) },
      { uses: [], make: (now) => casesHead(life, now) },
      { uses: ["case"], make: (now) => lineagePart(life, now, left) },
      { uses: ["find", "attempt"], make: (now) => casesPart(life, now) },
      { uses: [], make: (now) => attempts.length > 0 && [h("h2", "Attempts"), attemptTable(`Attempts at ${task.name}`, attempts, now)] },
    ], place);
  },
  update(place) {
    updateTask?.(place);
  },
});

/** @param {HTMLElement} main @param {Place} place */
function showTasks(main, place) {
  heading(main, "Tasks");
  const { tasks } = report.index;
  /** @type {Column<TaskSummary>[]} */
  const columns = [
    { title: "Task", value: (task) => task.name },
    { title: "Rounds", number: integer, value: (task) => task.rounds.length },
    { title: "Attempts", number: integer, value: (task) => report.attemptsAt(task.name).length },
  ];
  for (const field of /** @type {const} */ (["activity", "interaction", "category", "difficulty"])) {
    if (tasks.some((task) => task[field])) columns.push({ title: capital(field), value: (task) => task[field] });
  }
  main.append(table({ caption: "Tasks of this report", columns, items: tasks, open: (task) => link("task", [task.id]), empty: "No tasks. Run some: pytest --evocode-agent=oracle TASKS" }));
}

/** Attempts by the row that they count in, those that count in none last.
 * @param {TaskSummary} task */
function attemptsInOrder(task) {
  const order = new Map(report.index.rows.map((row, at) => [row.id, at]));
  return [...report.attemptsAt(task.name)].sort((one, other) =>
    (order.get(one.row) ?? Infinity) - (order.get(other.row) ?? Infinity) || one.agent.localeCompare(other.agent) || one.attempt - other.attempt);
}

/** @param {AttemptSummary[]} attempts @param {AbortSignal} left */
function roundsPart(attempts, left) {
  if (!attempts.length) return empty("No attempt at this task is in the report.", "Run one, such as: pytest --evocode-agent=oracle TASK");
  return [
    h("h2", "Rounds and attempts"),
    h("p.quiet", "Each attempt's first failure is marked. A cell leads to the round."),
    attemptGrid("Outcome of each round", attempts, left, (one) => attemptLabel(one) + (one.left_out ? " (does not count)" : "")),
  ];
}

/** The instruction of one round and its active suite.
 * @param {TaskData} data @param {Place} place */
function instructionPart({ rounds, requirements }, place) {
  const title = h("h2", "Instructions");
  if (!rounds || !rounds.length) return [title, empty("The instructions are not there, as the task is gone.", "Write the report where the task's directory is.")];
  const number = Math.min(Math.max(Math.trunc(Number(place.settings.round)) || 1, 1), rounds.length);
  const round = rounds[number - 1];
  /** @param {number} to @param {string} text */
  const step = (to, text) => h("button", { disabled: to < 1 || to > rounds.length, onclick: () => setSettings({ round: String(to) }) }, text);
  const retired = requirements.filter((one) => one.retired === number);
  const introduced = requirements.filter((one) => one.introduced === number);
  return [
    title,
    h("section.panel", { "aria-label": `Round ${number}` },
      h("div.panel-head", h("h3", `Round ${number} of ${rounds.length}: `, named(round.name), " ", round.change_types.map((type) => badge(type, "Change type"))),
        h("span", step(number - 1, "Previous"), step(number + 1, "Next"))),
      shownText(round.instruction, { tag: "div" }),
      introduced.length > 0 && h("p", "Introduces ", commaList(introduced.map((one) => one.id))),
      retired.length > 0 && h("p", "Retires ", commaList(retired.map((one) => one.id))),
      h("details", h("summary", `Active suite: ${counted(round.suite.length, "case")}`),
        longList(round.suite, (id) => anchor(link("task", place.path, { ...place.settings, case: id }), named(id))))),
  ];
}

/** @param {TaskData} data @param {Place} place */
function roundTable({ rounds, requirements }, place) {
  if (!rounds || rounds.length < 2) return null;
  const begun = Map.groupBy(requirements, (one) => one.introduced);
  const ended = Map.groupBy(requirements, (one) => one.retired);
  const items = rounds.map((round, at) => ({ ...round, number: at + 1 }));
  /** @type {Column<typeof items[number]>[]} */
  const columns = [
    { title: "Round", number: integer, value: (one) => one.number },
    { title: "Name", value: (one) => one.name },
    { title: "Change types", value: (one) => one.change_types.join(", ") },
    { title: "Cases", help: "Cases of the round's active suite", number: integer, value: (one) => one.suite.length },
    { title: "Introduces", help: "Requirements that are new in the round", number: integer, value: (one) => begun.get(one.number)?.length ?? 0 },
    { title: "Retires", help: "Requirements that hold no longer", number: integer, value: (one) => ended.get(one.number)?.length ?? 0 },
  ];
  return h("details", h("summary", "All rounds"),
    table({ caption: "All rounds of the task", columns, items, open: (one) => link("task", place.path, { ...place.settings, round: one.number }) }));
}
