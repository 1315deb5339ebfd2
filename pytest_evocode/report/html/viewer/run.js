/** Runs: how each was started, with what, where its time went, and the commands that continue or repeat it. */

definePage({
  name: "runs",
  title: "Runs",
  show(main, place) {
    heading(main, "Runs");
    const { runs } = report.index;
    if (!runs.length) {
      main.append(empty("No run is in this report.", "Results of other programs have none. Others come with: pytest --evocode-agent=oracle TASKS"));
      return;
    }
    /** @type {Column<RunSummary>[]} */
    const columns = [
      { id: "run", title: "Run", value: (run) => run.name, cell: (run) => h("a", { href: link("run", [run.id]) }, named(run.name)) },
      { id: "started", title: "Started", value: (run) => run.started, cell: (run) => timeOfDay(run.started) },
      { id: "took", title: "Took", number: true, value: wallSeconds, cell: (run) => duration(wallSeconds(run)) },
      { id: "state", title: "State", value: runState, cell: (run) => runBadge(run) },
      { id: "mode", title: "Mode", value: (run) => run.mode },
      { id: "environment", title: "Environment", value: (run) => run.environment, cell: (run) => named(run.environment) },
      { id: "shard", title: "Shard", value: (run) => (run.shard ? run.shard.join(" of ") : "–") },
      { id: "attempts", title: "Attempts", number: true, value: (run) => run.attempts.length },
      { id: "faults", title: "Faults", number: true, value: (run) => run.faults.length },
    ];
    main.append(table({ caption: "Runs of this report", columns, items: runs, place, open: (run) => link("run", [run.id]) }));
    const timed = runs.filter((run) => Object.values(run.phases).some(Boolean)).slice(0, 30);
    if (timed.length) main.append(h("h2", "Where the time went"), phaseBars(timed));
  },
});

definePage({
  name: "run",
  title: "",
  show(main, place) {
    const run = report.index.runs.find((each) => each.id === place.path[0]);
    if (!run) {
      heading(main, "No such run", [["Runs", link("runs")]]);
      main.append(empty("This report has no such run.", "Choose one in the list of runs."));
      return;
    }
    heading(main, run.name, [["Runs", link("runs")]]);
    main.append(facts([
      ["State", runBadge(run)], ["Started", timeOfDay(run.started)], ["Finished", timeOfDay(run.finished)], ["Took", duration(wallSeconds(run))],
      ["Mode", run.mode], ["Environment", named(run.environment)], ["Strict", run.strict === null ? "" : run.strict ? "yes" : "no"],
      ["Verify", run.verify && named(run.verify)], ["Shard", run.shard && `${run.shard[0]} of ${run.shard[1]}`], ["Attempts", integer(run.attempts.length)],
    ]));
    main.append(...[commandsPart(run), timesPart(run), faultsPart(run), warningsPart(run), agentsPart(run), versionsPart(run), attemptsPart(run, place)]
      .map((part) => h("section", part)).filter((part) => part.hasChildNodes()));
  },
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

/** Phases by who takes the time. */
const PHASES = /** @type {[string, string[]][]} */ ([
  ["agent", ["agent"]], ["verifier", ["fork", "suite", "reading"]], ["harness", ["setup", "snapshot", "bookkeeping"]], ["waiting", ["waiting"]],
]);

/** The phases that any of some runs has, in the order in which a round goes through them.
 * @param {RunSummary[]} runs */
function phasesOf(runs) {
  const order = ["setup", "agent", "snapshot", "bookkeeping", "waiting", "fork", "suite", "reading"];
  const there = new Set(runs.flatMap((run) => Object.keys(run.phases)));
  return [...order.filter((phase) => there.has(phase)), ...[...there].filter((phase) => !order.includes(phase))];
}

/** @param {RunSummary[]} runs */
function phaseBars(runs) {
  const parts = phasesOf(runs);
  const bars = runs.map((run) => ({ label: run.name, values: parts.map((phase) => own(run.phases, phase) ?? 0), href: link("run", [run.id]) }));
  return stackedBars({ title: "Time by phase, summed over rounds", parts, bars, format: duration });
}

/** @param {RunSummary} run */
function timesPart(run) {
  const total = Object.values(run.phases).reduce((sum, seconds) => sum + seconds, 0);
  if (!total) return null;
  /** @param {string} phase */
  const who = (phase) => PHASES.find(([, phases]) => phases.includes(phase))?.[0] ?? "other";
  return [
    h("h2", "Where the time went"),
    h("p.quiet", "Summed over rounds: attempts that run beside each other take less on the clock."),
    phaseBars([run]),
    h("div.wide", h("table", h("caption", "Time by phase"),
      h("thead", h("tr", ["Phase", "Whose", "Time", "Share"].map((title, at) => h("th", { scope: "col", class: at > 1 ? "number" : null }, title)))),
      h("tbody", phasesOf([run]).map((phase) => h("tr", h("th", { scope: "row" }, phase), h("td", who(phase)), h("td.number", duration(run.phases[phase])),
        h("td.number", `${score((100 * run.phases[phase]) / total)} %`)))))),
  ];
}

/** @param {RunSummary} run */
function commandsPart(run) {
  const started = startLine(run.arguments);
  /** @type {[string, string][]} */
  const lines = run.commands.some(([, command]) => command === started) ? run.commands : [["as it was started", started], ...run.commands];
  return [h("h2", "Commands"), h("dl.commands", lines.map(([what, command]) => {
    const copy = copyButton(command, "Copy");
    copy.setAttribute("aria-label", visible(`Copy: ${what}`));
    return h("div", h("dt", named(what)), h("dd", h("code", named(command, 1000)), copy));
  }))];
}

/** Arguments as a shell takes them.
 * @param {string[]} words */
function startLine(words) {
  const quoted = words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`));
  return ["pytest", ...quoted].join(" ");
}

/** @param {RunSummary} run */
const faultsPart = ({ faults }) => faults.length > 0 && [h("h2", "Faults"), longList(faults, ({ attempt, round, cause }) => {
  const found = report.attempt(attempt);
  return [h("a", { href: link("round", [attempt, round]) }, found ? [named(attemptLabel(found)), " at ", named(found.task)] : "attempt", `, round ${round}`), ": ", named(cause, 1000)];
}, 20)];

/** What to be careful about: attempts that do not count or rest on changed tools, and what could not be read.
 * @param {RunSummary} run */
function warningsPart(run) {
  const attempts = run.attempts.map((id) => report.attempt(id)).filter((one) => one !== undefined);
  /** @type {[AttemptSummary, string][]} */
  const found = attempts.flatMap((one) => [
    ...(one.left_out ? [`does not count: ${one.left_out}`] : []),
    ...(one.finished ? [] : ["not finished"]),
    ...(one.changed_tools.length ? [`changed tools in round ${one.changed_tools.slice(0, 20).join(", ")}`] : []),
  ].map((text) => /** @type {[AttemptSummary, string]} */ ([one, text])));
  const unread = report.index.problems.filter((problem) => problem.includes(run.name));
  if (!found.length && !unread.length) return null;
  return [h("h2", "Warnings"),
    unread.length > 0 && longList(unread, (problem) => named(problem, 1000), 20),
    longList(found, ([one, text]) => [h("a", { href: link("attempt", [one.id]) }, named(attemptLabel(one)), " at ", named(one.task)), ": ", named(text)], 20)];
}

/** @param {RunSummary} run */
function agentsPart({ agents }) {
  const names = Object.keys(agents);
  return names.length > 0 && [h("h2", "Agents"), names.map((name) => h("details", { open: names.length < 4 },
    h("summary", named(name)), facts(Object.entries(agents[name]).map(([key, value]) => [key, madeBy(value)]))))];
}

/** A value of JSON in a few words.
 * @param {unknown} value @returns {Child} */
function madeBy(value) {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value === "object") return shownText(JSON.stringify(value, null, 1), { tag: "pre" });
  return named(String(value), 1000);
}

/** @param {RunSummary} run */
function versionsPart({ versions }) {
  const names = Object.keys(versions);
  return names.length > 0 && [h("h2", "Versions"), facts(names.map((name) => [name, named(versions[name])]))];
}

/** @param {RunSummary} run @param {Place} place */
function attemptsPart(run, place) {
  const attempts = run.attempts.map((id) => report.attempt(id)).filter((one) => one !== undefined);
  return [h("h2", "Attempts"), attemptTable("Attempts of this run", attempts, place)];
}
