/** Runs: how each was started, with what, where its time went, and the commands that continue or repeat it. */

definePage("runs", "Runs", (main) => {
  heading(main, "Runs");
  const { runs } = report;
  if (!runs.length) {
    main.append(empty("No run is in this report.", "Results of other programs have none."));
    return;
  }
  /** @type {Column<RunSummary>[]} */
  const columns = [
    textColumn("Run", (run) => run.name),
    { title: "Started", value: (run) => run.started, cell: (run) => timeOfDay(run.started) },
    { title: "Took", number: duration, value: wallSeconds },
    { title: "State", value: runState, cell: runBadge },
    textColumn("Mode", (run) => run.mode),
    textColumn("Environment", (run) => run.environment),
    textColumn("Shard", (run) => (run.shard ? run.shard.join(" of ") : "–")),
    countColumn("Attempts", (run) => run.attempts.length),
    countColumn("Faults", (run) => run.faults.length),
  ];
  main.append(table({ caption: "Runs of this report", columns, items: runs, open: (run) => link("run", [run.id]) }));
  const timed = runs.filter((run) => Object.values(run.phases).some(Boolean)).slice(0, 30);
  if (timed.length) main.append(h("h2", "Where the time went"), phaseBars(timed));
});

definePage("run", "", (main, place) => {
  const run = report.runs.find((each) => each.id === place.path[0]);
  if (!run) {
    heading(main, "No such run", [["Runs", link("runs")]]);
    main.append(empty("This report has no such run.", "Choose one in the list of runs."));
    return;
  }
  heading(main, playedIn(run.name, run.environment), [["Runs", link("runs")]]);
  main.append(facts([
    ["State", runBadge(run)], ["Started", timeOfDay(run.started)], ["Finished", timeOfDay(run.finished)], ["Took", duration(wallSeconds(run))],
    ["Mode", run.mode], ["Environment", named(run.environment)], ["Strict", yesNo(run.strict)],
    ["Verify", run.verify && named(run.verify)], ["Shard", run.shard && `${run.shard[0]} of ${run.shard[1]}`], ["Attempts", integer(run.attempts.length)],
  ]));
  main.append(...[commandsPart(run), timelinePart(run), timesPart(run), faultsPart(run), warningsPart(run), agentsPart(run), versionsPart(run), attemptsPart(run)]
    .map((part) => h("section", part)).filter((part) => part.hasChildNodes()));
});

/** Seconds from start to end.
 * @param {RunSummary} run */
function wallSeconds({ started, finished }) {
  const seconds = finished ? (Date.parse(finished) - Date.parse(started)) / 1000 : NaN;
  return Number.isFinite(seconds) ? seconds : null;
}

/** What pytest's exit status says. @type {{[status: number]: string}} */
const EXITS = { 0: "all passed", 1: "some failed", 2: "interrupted", 3: "internal error", 4: "usage error", 5: "nothing collected" };

/** @param {RunSummary} run */
function runState({ finished, exit_status: status }) {
  if (!finished) return "not finished";
  return status === null ? "finished" : EXITS[status] ?? `exit status ${status}`;
}

/** @param {RunSummary} run */
function runBadge(run) {
  const kind = run.exit_status === 0 ? "good" : run.finished && run.exit_status === 1 ? "plain" : "warning";
  return badge(runState(run), run.exit_status === null ? "It ended without saying how, or is under way" : `Exit status ${run.exit_status}`, kind);
}

/** Phases in the order in which a round goes through them, and whose time each is. @type {{ [phase: string]: string }} */
const PHASES = {
  setup: "harness", agent: "agent", snapshot: "harness", bookkeeping: "harness", waiting: "waiting", fork: "verifier", suite: "verifier", reading: "verifier",
};

/** The phases that any of some runs has. @param {RunSummary[]} runs */
function phasesOf(runs) {
  const there = new Set(runs.flatMap((run) => Object.keys(run.phases)));
  return [...Object.keys(PHASES).filter((phase) => there.has(phase)), ...[...there].filter((phase) => !PHASES[phase])];
}

/** @param {RunSummary[]} runs */
function phaseBars(runs) {
  const parts = phasesOf(runs);
  const bars = runs.map((run) => ({ label: run.name, values: parts.map((phase) => own(run.phases, phase) ?? 0), href: link("run", [run.id]) }));
  return stackedBars({ title: "Time by phase, summed over rounds", parts, bars, format: duration });
}

/** @param {RunSummary} run */
function timelinePart({ timeline: found }) {
  if (!found) return null;
  const { seconds, stages, bars } = found;
  return [
    h("h2", "What it waited for"),
    plainTable("Critical path by stage", ["Stage", "What it is", "Time", "Share"],
      stages.map(([name, about, took]) => [name, about, duration(took), `${score((100 * took) / seconds)} %`]), 2),
    timeBars({
      parts: ["turns", "suites"], seconds,
      bars: bars.map(({ name, attempt, turns, suites }) => ({ label: name, spans: [turns, suites], href: attempt && link("attempt", [attempt]) })),
    }),
  ];
}

/** @param {RunSummary} run */
function timesPart(run) {
  const total = Object.values(run.phases).reduce((sum, seconds) => sum + seconds, 0);
  if (!total) return null;
  return [
    h("h2", "Where the time went"),
    h("p.quiet", "Summed over rounds; attempts that run at the same time take less on the clock."),
    plainTable("Time by phase", ["Phase", "Whose", "Time", "Share"], phasesOf([run]).map((phase) => [
      phase, PHASES[phase] ?? "other", duration(run.phases[phase]), `${score((100 * (run.phases[phase] ?? 0)) / total)} %`,
    ]), 2),
  ];
}

/** @param {RunSummary} run */
function commandsPart({ arguments: words, commands }) {
  const started = ["pytest", ...words.map(quoted)].join(" ");
  const known = commands.some(([, command]) => command === started);
  return [h("h2", "Commands"), h("div.commands", (known ? commands : [["As it was started", started], ...commands]).map(
    ([what = "", command = ""]) => [h("p", named(capital(what))), commandLine(command, what)]))];
}

/** @param {RunSummary} run */
const faultsPart = ({ faults }) => faults.length > 0 && [h("h2", "Faults"), longList(faults, ({ attempt, round, cause }) => {
  const found = report.attempt(attempt);
  return [found && [attemptAt(found), ", "], anchor(link("round", [attempt, round]), `round ${round}`), ": ", named(cause, 2000)];
}, 20)];

/** @param {AttemptSummary} attempt */
const attemptAt = (attempt) => [anchor(link("attempt", [attempt.id]), named(attemptLabel(attempt))), " at ", named(attempt.task)];

/** What to be careful about: what the run said, attempts that do not count or trust the agent's system, and what could not be read.
 * @param {RunSummary} run */
function warningsPart({ name, warnings = [], attempts }) {
  /** @type {[AttemptSummary | null, string][]} */
  const found = [...warnings, ...report.problems.filter((problem) => problem.includes(name))].map((text) => [null, text]);
  for (const id of attempts) {
    const one = report.attempt(id);
    if (one?.left_out) found.push([one, `does not count: ${one.left_out}`]);
    if (one && !one.finished) found.push([one, "not finished"]);
    if (one?.trusts.length) found.push([one, `trusts the agent's system in round ${one.trusts.slice(0, 20).join(", ")}`]);
  }
  return found.length > 0 && [h("h2", "Warnings"), longList(found, ([one, text]) => [one && [attemptAt(one), ": "], named(text, 1000)], 20)];
}

/** @param {RunSummary} run */
function agentsPart({ agents }) {
  const names = entries(agents);
  return names.length > 0 && [h("h2", "Agents"), names.map(([name, made]) => h("details", { open: names.length < 4 },
    h("summary", named(name)), facts(entries(made).map(([key, value]) => [key, madeBy(value)]))))];
}

/** @param {RunSummary} run */
function versionsPart({ versions }) {
  const names = entries(versions);
  return names.length > 0 && [h("h2", "Versions"), facts(names.map(([name, version]) => [name, named(version)]))];
}

/** @param {RunSummary} run */
const attemptsPart = (run) =>
  [h("h2", "Attempts"), attemptTable("Attempts of this run", run.attempts.flatMap((id) => report.attempt(id) ?? []))];
