// The page of one attempt: its rounds, what made it, and what could not be read of it.

definePage({
  name: "attempt",
  title: "",
  async show(main, place, left) {
    const [id = ""] = place.path;
    const attempt = await load(`attempts/${id}`);
    if (left.aborted) return;
    const summary = report.attempt(id);
    heading(main, `${attempt.agent}, attempt ${attempt.attempt}`, attemptTrail(attempt));
    main.append(attemptProblems(attempt));
    if (summary?.left_out) main.append(note("warning", "It does not count: ", named(summary.left_out, 1000)));
    if (summary) {
      main.append(
        cellGrid({
          caption: "Rounds of this attempt",
          left,
          columns: [...summary.cells].map((_, at) => ({ label: String(at + 1) })),
          rows: [
            {
              label: attempt.agent,
              cells: summary.cells,
              titles: (column) => roundTitle(attempt, column + 1),
              hrefs: (column) => link("round", [id, column + 1]),
            },
          ],
        }),
        cellLegend(summary.cells),
      );
    }
    main.append(roundsTable(attempt, place), attemptFacts(attempt));
  },
});

/** @param {AttemptData} attempt */
function attemptProblems(attempt) {
  if (!attempt.problems.length) return "";
  const items = attempt.problems.map((each) => h("li", named(each, 1000)));
  return note("error", "Not all of this attempt could be read:", h("ul", items));
}

/** @param {AttemptData} attempt @param {number} index */
function roundTitle(attempt, index) {
  const round = attempt.rounds.find((each) => each.index === index);
  return round ? `Round ${index}, ${round.name}: ${cellName(round.cell)}` : `Round ${index}: no record`;
}

/** @param {AttemptData} attempt @param {Place} place */
const roundsTable = (attempt, place) => table({
  caption: "Rounds",
  place,
  items: attempt.rounds,
  open: (round) => link("round", [attempt.id, round.index]),
  empty: "No round of this attempt is recorded yet.",
  columns: [
    {
      id: "round",
      title: "Round",
      value: (round) => round.index,
      cell: (round) =>
        h("a", { href: link("round", [attempt.id, round.index]) }, `${round.index} `, named(round.name)),
    },
    {
      id: "outcome",
      title: "Outcome",
      value: (round) => cellName(round.cell),
      cell: (round) => [cellName(round.cell), round.repeats?.flaky && [" ", badge("flaky", "Runs on the same files differ", "warning")]],
    },
    {
      id: "cases",
      title: "Cases",
      help: "Passed cases, and of how many",
      number: true,
      value: (round) => (round.counts[1] ? round.counts[0] / round.counts[1] : null),
      cell: (round) => (round.counts[1] ? `${integer(round.counts[0])} of ${integer(round.counts[1])}` : "–"),
    },
    { id: "failing", title: "Failed cases", value: (round) => caseKinds(round.cases) },
    { id: "files", title: "Files", help: "Changed files", number: true, value: (round) => round.changes?.length ?? null },
    {
      id: "steps",
      title: "Steps",
      number: true,
      value: (round) => round.trajectory?.steps ?? null,
      cell: (round) =>
        round.trajectory
          ? h("a", { href: link("trajectory", [attempt.id, round.index]) }, integer(round.trajectory.steps))
          : "–",
    },
    { id: "time", title: "Agent", help: "Time of the agent's turn", number: true, value: (round) => round.agent_seconds, cell: (round) => duration(round.agent_seconds) },
    { id: "cost", title: "Cost", number: true, value: (round) => round.usage?.cost_usd ?? null, cell: (round) => money(round.usage?.cost_usd) },
    { id: "process", title: "Process", help: "RigorScore", number: true, value: (round) => round.process?.score ?? null, cell: (round) => score(round.process?.score) },
  ],
});

/** @param {AttemptData} attempt */
function attemptFacts(attempt) {
  const run = report.index.runs.find((each) => each.name === attempt.run || each.id === attempt.run);
  /** @type {[string, Child][]} */
  const made = Object.entries(attempt.made_by).map(([key, value]) => [
    `Agent's ${key}`,
    named(typeof value === "string" ? value : JSON.stringify(value), 1000),
  ]);
  return h(
    "section",
    h("h2", "About this attempt"),
    terms([
      ["Run", run ? h("a", { href: link("run", [run.id]) }, run.name) : attempt.run],
      ["Started", attempt.started && timeOfDay(attempt.started)],
      ["Finished", attempt.finished ? timeOfDay(attempt.finished) : "not yet"],
      ["Environment", attempt.environment],
      ["Strict", attempt.strict === null ? null : attempt.strict ? "yes" : "no"],
      ["Verified again", attempt.regraded && timeOfDay(attempt.regraded)],
      ["Rewards", Object.entries(attempt.rewards).map(([key, value], at) => [at > 0 && ", ", named(key, 1000), ` ${numberText(value)}`])],
      ...made,
      ["Directory", named(attempt.path, 1000)],
    ]),
  );
}
