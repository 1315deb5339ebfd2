/** A task: how agents go through its rounds, how its requirements and cases live, and what it asks for. */

definePage("task", "Tasks", async (main, place, left) => {
  if (!place.path.length) return showTasks(main);
  const task = report.tasks.find((each) => each.id === place.path[0]);
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
  const data = await load(`tasks/${task.id}`);
  if (left.aborted) return;
  if (data.note || !data.rounds) {
    main.append(note("warning", data.note ? named(data.note, 1000) : "This task is gone: what is known of it comes from records."));
  }
  const life = { task, data, attempts: attempts.filter((one) => data.attempts.some((each) => each.id === one.id)) };
  return { update: showSections(main, [
    { uses: ["round"], make: (now) => instructionPart(data, now) },
    { uses: ["attempt"], make: (now) => requirementsPart(life, now) },
    { uses: [], make: () => casesHead(life) },
    { uses: ["case"], make: (now) => lineagePart(life, now, left) },
    { uses: ["find", "attempt"], make: (now) => casesPart(life, now) },
    { uses: [], make: () => attempts.length > 0 && [h("h2", "Attempts"), attemptTable(`Attempts at ${task.name}`, attempts)] },
  ], place) };
});

/** @param {HTMLElement} main */
function showTasks(main) {
  heading(main, "Tasks");
  const { tasks } = report;
  /** @type {Column<TaskSummary>[]} */
  const columns = [
    textColumn("Task", (task) => task.name),
    countColumn("Rounds", (task) => task.rounds.length),
    countColumn("Attempts", (task) => report.attemptsAt(task.name).length),
  ];
  for (const field of /** @type {const} */ (["activity", "interaction", "category", "difficulty"])) {
    if (tasks.some((task) => task[field])) columns.push({ title: capital(field), value: (task) => task[field] });
  }
  main.append(table({ caption: "Tasks of this report", columns, items: tasks, open: (task) => link("task", [task.id]), empty: "No tasks. Run some: pytest --evocode-agent=oracle TASKS" }));
}

/** Attempts by the row that they count in, those that count in none last.
 * @param {TaskSummary} task */
function attemptsInOrder(task) {
  const order = new Map(report.rows.map((row, at) => [row.id, at]));
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
  const field = h("input", { type: "number", min: 1, max: rounds.length, value: number, onchange: () => setSettings({ round: field.value }) });
  const retired = requirements.filter((one) => one.retired === number);
  const introduced = requirements.filter((one) => one.introduced === number);
  return [
    title,
    h("section.panel", { label: `Round ${number}` },
      h("div.panel-head", h("h3", `Round ${number} of ${rounds.length}: `, named(round.name), " ", round.change_types.map((type) => badge(type, "Change type"))),
        h("span", h("label.field", h("span", "Round"), field), " ", step(number - 1, "Previous"), " ", step(number + 1, "Next"))),
      h("div.written", writtenParts(round.written)),
      unfolding("details", "As it is written", false, () => shownText(round.instruction)),
      introduced.length > 0 && h("p", "Introduces ", commaList(introduced.map((one) => one.id))),
      retired.length > 0 && h("p", "Retires ", commaList(retired.map((one) => one.id))),
      h("details", h("summary", `Active suite: ${counted(round.suite.length, "case")}`),
        longList(round.suite, (id) => anchor(here({ case: id }), named(id))))),
  ];
}
