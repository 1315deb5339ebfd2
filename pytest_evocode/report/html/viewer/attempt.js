/** The page of one attempt: its rounds, what made it, and what could not be read of it. */

definePage("attempt", "", async (main, place, left) => {
  const [id = ""] = place.path;
  const attempt = await load(`attempts/${id}`);
  if (left.aborted) return;
  const summary = report.attempt(id);
  heading(main, attemptTitle(attempt), attemptTrail(attempt));
  appendAll(main, [
    attemptProblems(attempt),
    attemptCut(attempt),
    summary?.left_out && note("warning", "It does not count: ", named(summary.left_out, 1000)),
    summary && attemptGrid("Rounds of this attempt", [summary], left, (each) => each.agent),
    roundsTable(attempt),
    attemptFacts(attempt),
  ]);
});

/** @param {AttemptData} attempt */
const attemptProblems = ({ problems }) =>
  problems.length > 0 && note("error", "Not all of this attempt could be read:", longList(problems, (each) => named(each, 1000)));

/** Which budget cut the attempt, and in which rounds. @param {AttemptData} attempt */
function attemptCut({ rounds }) {
  const cut = rounds.filter((round) => round.stopped.startsWith("budget: "));
  return cut.length > 0 && note("warning", "Cut by its budget:", longList(cut, (round) => named(`round ${round.index}: ${round.stopped.replace("budget: ", "")}`, 1000)));
}

/** @param {AttemptData} attempt */
const roundsTable = (attempt) => table({
  caption: "Rounds",
  items: attempt.rounds,
  open: (round) => link("round", [attempt.id, round.index]),
  columns: [
    { title: "Round", value: (round) => round.index, cell: (round) => [`${round.index} `, named(round.name)] },
    {
      title: "Outcome", value: (round) => cellName(round.cell),
      cell: (round) => [cellName(round.cell), round.repeats?.flaky && [" ", badge("flaky", "Runs on the same files differ", "warning")]],
    },
    {
      title: "Cases", help: "Passed cases, and of how many", number: integer,
      value: ({ counts: [passed, of] }) => (of ? passed / of : null), cell: ({ counts }) => (counts[1] ? counts.map(integer).join(" of ") : UNKNOWN),
    },
    textColumn("Failed cases", (round) => caseKinds(round.cases)),
    countColumn("Files", (round) => round.changes?.length ?? null, "Changed files"),
    {
      title: "Steps", number: integer, value: (round) => round.trajectory?.steps ?? null,
      cell: ({ index, trajectory }) => trajectory && anchor(link("trajectory", [attempt.id, index]), integer(trajectory.steps)),
    },
    { title: "Agent", help: "Time of the agent's turn", number: duration, value: (round) => round.agent_seconds },
    { title: "Cost", number: money, value: (round) => round.usage?.cost_usd ?? null },
    { title: "Process", help: "RigorScore", number: score, value: (round) => round.process?.score ?? null },
  ],
});

/** @param {AttemptData} attempt */
function attemptFacts(attempt) {
  const run = report.runs.find((each) => each.name === attempt.run || each.id === attempt.run);
  return h("section", h("h2", "About this attempt"), terms([
    ["Run", run ? anchor(link("run", [run.id]), run.name) : attempt.run],
    ["Started", attempt.started && timeOfDay(attempt.started)],
    ["Finished", attempt.finished ? timeOfDay(attempt.finished) : "not yet"],
    ["Environment", attempt.environment],
    ["Strict", yesNo(attempt.strict)],
    ["Verified again", attempt.regraded && timeOfDay(attempt.regraded)],
    ["Rewards", rewardList(entries(attempt.rewards))],
    ...entries(attempt.made_by).map(([key, value]) => /** @type {[string, Child]} */ ([`Agent's ${key}`, madeBy(value)])),
    ["Directory", named(attempt.path, 1000)],
  ]));
}

/** @param {boolean | null} value */
const yesNo = (value) => value === null ? "" : value ? "yes" : "no";

/** A value of JSON. @param {unknown} value @returns {Child} */
function madeBy(value) {
  if (value === null || value === undefined || value === "") return UNKNOWN;
  return named(typeof value === "object" ? JSON.stringify(value, null, 1) : String(value), 1000);
}

/** Rewards by name, with four digits after the point at most. @param {[string, number][]} rewards @returns {Child} */
const rewardList = (rewards) => rewards.length > 0
  && commaList(rewards.map(([key, value]) => h("span", named(key), ` ${value.toLocaleString("en", { maximumFractionDigits: 4 })}`)));
