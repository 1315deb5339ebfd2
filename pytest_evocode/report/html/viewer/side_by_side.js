/** Two attempts at one task, round by round: verdicts, trajectories and workspaces beside each other. */

/** @typedef {{task: TaskSummary, attempts: AttemptSummary[], first: AttemptSummary, second: AttemptSummary, round: number}} Sides */

/** @param {Place} place @param {RowPair | null} pair @param {TaskPair[]} tasks @param {AbortSignal} left */
function sideBySide(place, pair, tasks, left) {
  const section = h("section", { id: "side-by-side" }, h("h2", "Side by side"));
  const sides = chosenSides(place, pair, tasks);
  if (!sides) {
    section.append(empty("No task has two attempts.", "Choose rows that have a task in common, or run one more attempt."));
    return section;
  }
  section.append(sidesChoice(sides), waitingPart(shownSides(sides, left), left, (shown) => shown));
  return section;
}

/** What the place chooses, filled up with the first task that has two attempts, and with where they part.
 * @param {Place} place @param {RowPair | null} pair @param {TaskPair[]} tasks @returns {Sides | null} */
function chosenSides({ settings }, pair, tasks) {
  const all = report.tasks;
  const several = (/** @type {TaskSummary} */ task) => report.attemptsAt(task.name).length > 1;
  const task = all.find((each) => each.id === settings.task)
    ?? tasks.find((each) => each.parts !== null)?.task ?? tasks.find((each) => several(each.task))?.task ?? all.find(several);
  const attempts = task ? report.attemptsAt(task.name) : [];
  if (!task || attempts.length < 2) return null;
  const of = (/** @type {Row | undefined} */ row) => attempts.filter((each) => each.row === row?.id);
  const first = attempts.find((each) => each.id === settings.a) ?? of(pair?.first)[0] ?? attempts[0];
  const second = attempts.find((each) => each.id === settings.b) ?? of(pair?.second).find((each) => each !== first)
    ?? /** @type {AttemptSummary} */ (attempts.find((each) => each !== first));
  const last = Math.max(1, task.rounds.length);
  const wanted = Number(settings.round) || firstParting([first], [second]) || 1;
  return { task, attempts, first, second, round: Math.min(last, Math.max(1, Math.trunc(wanted))) };
}

/** @param {Sides} sides */
function sidesChoice({ task, attempts, first, second, round }) {
  /** @type {[string, string][]} */
  const tasks = report.tasks.filter((each) => report.attemptsAt(each.name).length > 1).map((each) => [each.id, each.name]);
  /** @type {[string, string][]} */
  const choices = attempts.map((each) => [each.id, attemptLabel(each)]);
  /** @type {[string, string][]} */
  const rounds = task.rounds.map((name, place) => [String(place + 1), `${place + 1}: ${name}`]);
  /** @param {{ [name: string]: string | null }} changed */
  const choose = (changed) => setSettings({ task: task.id, a: first.id, b: second.id, round: null, ...changed });
  return h("div.controls",
    select({ label: "Task", value: task.id, choices: tasks, change: (id) => choose({ task: id, a: null, b: null }) }),
    select({ label: "First attempt", value: first.id, choices, change: (a) => choose({ a }) }),
    select({ label: "Second attempt", value: second.id, choices, change: (b) => choose({ b }) }),
    select({ label: "Round", value: String(round), choices: rounds, change: (number) => choose({ round: number }) }));
}

/** @param {Sides} sides @param {AbortSignal} left @returns {Promise<Child>} */
async function shownSides(sides, left) {
  const attempts = [sides.first, sides.second];
  const loaded = await Promise.allSettled(attempts.map((each) => load(`attempts/${each.id}`)));
  const both = loaded.map((each, side) => ({
    attempt: /** @type {AttemptSummary} */ (attempts[side]),
    round: (each.status === "fulfilled" && each.value.rounds.find((round) => round.index === sides.round)) || null,
  }));
  return [
    loaded.map((each) => each.status === "rejected" && note("error", messageOf(each.reason))),
    sides.first === sides.second && note("info", "Both sides are the same attempt."),
    partingLine(sides),
    tabs({
      label: "What to see side by side", setting: "tab",
      items: [
        { id: "verdicts", title: "Verdicts", show: () => verdictsBeside(both) },
        { id: "trajectories", title: "Trajectories", show: () => beside(both, (side) => outline(side, left)) },
        { id: "workspaces", title: "Workspaces", show: () => workspacesBeside(both) },
      ],
    }),
  ];
}

/** @typedef {{attempt: AttemptSummary, round: RoundData | null}} Side */

/** @param {Sides} sides */
function partingLine({ first, second, round }) {
  const parts = firstParting([first], [second]);
  if (parts === null) return h("p", "Both pass and fail the same rounds, as far as both have verdicts.");
  const there = here({ round: parts });
  return h("p", "They part at ", round === parts ? h("strong", `round ${parts}`) : anchor(there, `round ${parts}`), ", the first that only one of them passes.");
}

/** Two columns with the names of the attempts above. @param {Side[]} sides @param {(side: Side) => Child} show */
const beside = (sides, show) => h("div.beside", sides.map((side) => {
  const { attempt, round } = side;
  const cell = attempt.cells[(round?.index ?? 0) - 1];
  return h("section", h("h3", anchor(link("attempt", [attempt.id]), named(attemptLabel(attempt)))),
    round
      ? h("p", anchor(link("round", [attempt.id, round.index]), `Round ${round.index}`), `: ${cell ? cellName(cell) : round.outcome}, ${integer(round.counts[0])} of ${integer(round.counts[1])} cases passed`)
      : empty("This round is not recorded.", "See the attempt for what could not be read."),
    round && show(side));
}));

/** @param {Side[]} sides @returns {Child} */
function verdictsBeside(sides) {
  const [first, second] = sides.map(({ round }) => new Map(round?.cases.map((each) => [each.id, each]) ?? []));
  if (!first || !second) return null;
  const ids = [...new Set([...first.keys(), ...second.keys()])];
  const differing = ids.filter((id) => first.get(id)?.status !== second.get(id)?.status);
  return [
    beside(sides, ({ round }) => round?.cause && h("p", named(round.cause, 1000))),
    !first.size || !second.size ? h("p", "Cases ran on one side at most.")
    : differing.length ? plainTable(`Cases with different results: ${differing.length} of ${ids.length}`, ["Case", "First", "Second", "What it checks"],
      differing.slice(0, 500).map((id) => {
        const [ours, theirs] = [first.get(id), second.get(id)];
        return [named(id), caseState(ours, sides[0]), caseState(theirs, sides[1]), named(ours?.intent || theirs?.intent || "")];
      }), 4)
    : h("p", "All cases have the same result on both sides."),
  ];
}

/** @param {CaseData | undefined} each @param {Side | undefined} side */
function caseState(each, side) {
  if (!each || !side?.round) return "not run";
  const href = link("round", [side.attempt.id, side.round.index], { case: each.id });
  return each.failure ? anchor(href, `failed, ${each.failure}`) : each.status;
}

/** A line for each step, of a trajectory of any length. @param {Side} side @param {AbortSignal} left @returns {Child} */
function outline({ attempt, round }, left) {
  if (!round?.trajectory?.steps) {
    return empty("There is no trajectory of this round.", "Agents that can be recorded leave one; see the agents' page of the documentation.");
  }
  const parts = trajectoryParts(attempt.id, round);
  const list = virtualList({
    count: parts.count, estimate: 44, label: `Steps of ${attemptLabel(attempt)}`, left,
    render(index) {
      const step = parts.step(index);
      if (step) return outlineStep(step, attempt, round);
      const part = parts.partOf(index);
      if (parts.has(part)) return h("div.outline-step", parts.problem(part) ?? "");
      void parts.keep(part).then(() => left.aborted || list.refresh());
      return h("div.outline-step", "Loading…");
    },
  });
  return list.element;
}

/** @param {Step} step @param {AttemptSummary} attempt @param {RoundData} round */
function outlineStep(step, attempt, round) {
  const text = (/** @type {string} */ long) => named(long.length > 160 ? `${long.slice(0, 160).trimEnd()}…` : long);
  const changes = step.calls.flatMap((call) => call.changes);
  return h("div.outline-step", anchor(link("trajectory", [attempt.id, round.index], { step: step.id }), `${(SOURCES[step.source] ?? [step.source, step.source])[1]}, step ${step.id}`),
    " ", copiedBadge(step), " ",
    step.calls.length
      ? step.calls.map((call) => h("div", badge(call.purpose || call.name, "What the call is for"), " ",
        text(callArguments(call)[0]?.[1] ?? ""), exitBadge(call.exit_code)))
      : text(step.text || step.reasoning),
    changes.length > 0 && h("div.outline-files", changes.slice(0, 5).map((change) => [text(change.path), ` +${change.added} −${change.removed} `])));
}

/** @param {Side[]} sides */
function workspacesBeside(sides) {
  const files = sides.map(({ round }) => new Map(round?.changes?.map((change) => [change.path, change]) ?? []));
  const paths = [...new Set(files.flatMap((each) => [...each.keys()]))].sort();
  const unknown = sides.filter(({ round }) => round && round.changes === null);
  const shown = paths.slice(0, 200);
  return [
    unknown.map(({ attempt }) => note("info", `What ${attemptLabel(attempt)} changed in this round was not recorded.`)),
    shown.length === 0 && unknown.length === 0 && h("p", "Neither changed a file in this round."),
    shown.length < paths.length && note("info", `The first ${shown.length} of ${paths.length} files are shown.`),
    shown.map((path) => h("details", { open: shown.length < 6 },
      h("summary", named(path), unknown.length === 0 && ` ${whoChanged(path, files)}`),
      h("div.beside", sides.map(({ attempt, round }, side) => {
        const change = files[side]?.get(path);
        const step = (/** @type {number} */ number) => link("trajectory", [attempt.id, round?.index ?? 0], { step: number });
        return h("section", { label: attemptLabel(attempt) },
          h("h3", named(attemptLabel(attempt))),
          change ? fileChanges([change], step) : h("p", round?.changes === null ? "Not recorded." : "Not changed."));
      })))),
  ];
}

/** @param {string} path @param {Map<string, FileChange>[]} files */
function whoChanged(path, [first, second]) {
  const [ours, theirs] = [first?.get(path), second?.get(path)];
  if (!ours || !theirs) return ours ? "(first only)" : "(second only)";
  return ours.diff && ours.diff === theirs.diff ? "(both, the same change)" : "(both)";
}
