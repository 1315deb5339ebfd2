/** The page of one round: its verdict and what that rests on, its cases, changes, output, process and times. */

/** @type {{ [place: string]: string }} */
const RESTS_ON = {
  separate: "The suite ran in the task's image as it was built, apart from the program. Nothing that the agent made was there.",
  clean: "The suite ran in an environment made anew, with what the agent is to leave behind brought over: the workspace, artifacts and the task's state. What the suite reads or imports from there is the agent's.",
  "in-place": "The suite ran in all of the agent's system, and trusts it. Whatever the agent changed was there and can steer the verdict.",
};

definePage("round", "", async (main, place, left) => {
  const { attempt, round, number } = await loadedRound(place);
  if (left.aborted) return;
  heading(main, `Round ${round ? `${round.index}: ${round.name}` : number}`, roundTrail(attempt));
  if (!round) {
    appendAll(main, [empty(`This attempt has no record of a round ${number}.`, "Choose one of its rounds on the attempt's page."), attemptProblems(attempt)]);
    return;
  }
  main.append(roundLinks(attempt, round, "round"), verdictView(round), roundTabs(attempt, round, place, left));
  return {
    keys: {
      ...roundKeys(attempt, round, "round"),
      t: { help: "Trajectory of the round", run: () => go(link("trajectory", place.path)) },
    },
  };
});

/** @param {AttemptData} attempt @param {RoundData} round @param {Place} place @param {AbortSignal} left */
function roundTabs(attempt, round, place, left) {
  const path = [attempt.id, round.index];
  /** @param {number} step */
  const toStep = (step) => link("trajectory", path, { step });
  const failing = round.cases.filter(isFailing).length;
  const { changes, process } = round;
  return tabs({
    label: "About this round",
    setting: "tab",
    items: [
      {
        id: "cases",
        title: failing ? `Cases (${integer(failing)} failing)` : "Cases",
        show: () => casesView(attempt, round, place),
      },
      {
        id: "changes",
        title: changes ? `Changes (${integer(changes.length)})` : "Changes",
        show: () => changesView(changes, round, toStep),
      },
      { id: "output", title: "Output", show: () => outputView(round.output, round.omitted, place, left) },
      {
        id: "process",
        title: process?.score == null ? "Process" : `Process (${score(process.score)})`,
        show: () => roundProcess(round, place, toStep),
      },
      { id: "time", title: "Time and cost", show: () => timesView(round) },
      { id: "again", title: "Run it again", show: () => commandsView(attempt, round) },
    ],
  });
}

/** @param {FileChange[] | null} changes @param {RoundData} round @param {(step: number) => string} step */
function changesView(changes, round, step) {
  if (changes === null) {
    return empty(
      "What this round changed in the workspace was not recorded.",
      "Actions of the shell agent, of installed CLIs and of commands are recorded.",
    );
  }
  if (!changes.length) return note("info", "The workspace is the same after this round as before it.");
  return fileChanges(changes, round.trajectory ? step : undefined);
}

/** Signs and classes of outcomes. @type {{ [outcome: string]: [string, string] }} */
const OUTCOMES = { passed: ["✓", "good"], failed: ["✗", "bad"], error: ["!", "bad"] };

/** @param {RoundData} round */
function verdictView(round) {
  const kinds = caseKinds(round.cases);
  const [passed, of] = round.counts;
  const [sign, tone] = OUTCOMES[round.outcome] ?? ["·", ""];
  return h("section.verdict", { label: "Verdict" },
    h("p.outcome", { class: tone }, h("b", `${sign} ${capital(cellName(round.cell))}`),
      of > 0 && ` · ${integer(passed)} of ${integer(of)} cases passed`, passed < of && kinds && `: ${kinds}`),
    round.cause && h("div.cause", shownText(round.cause, { limit: 4000 })),
    terms([
      ["Reward", rewardList([.../** @type {[string, number][]} */ (round.reward === null ? [] : [["", round.reward]]), ...entries(round.rewards).filter(([key]) => key !== "reward")])],
      ["Timeout", round.timed_out && (round.timed_out === "agent" ? "of the agent's turn" : "of the suite")],
      ["Turn was stopped", round.stopped && named(round.stopped, 1000)],
      ["Repeats", repeatsView(round)],
      ["Artifacts", round.artifacts.length > 0 && commaList(round.artifacts)],
      ["Rests on", restsOnView(round)],
    ]),
    round.flags.map((flag) => note("warning", named(flag, 1000))),
    trustNote(round));
}

/** @param {string} text */
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** @param {RoundData} round @returns {Child} */
const repeatsView = ({ repeats }) => repeats && [
  `The suite ran ${integer(repeats.times)} times and passed ${integer(repeats.passed)} times. `,
  repeats.flaky && [badge("flaky", "Runs on the same files had different verdicts", "warning"), " "],
  repeats.differing.length > 0 && ["They differ in ", commaList(repeats.differing)],
];

/** @param {RoundData} round @returns {Child} */
function restsOnView({ outcome, rests_on: place }) {
  if (outcome === "not reached" || outcome === "under way") return null;
  return place ? [h("b", place), `. ${RESTS_ON[place]}`] : "The record does not say where the suite ran.";
}

/** @param {RoundData} round */
function trustNote({ trusts, changed_counts: counts, void: isVoid }) {
  const sums = entries(counts).map(([kind, count]) => `${integer(count)} ${kind}`);
  const others = sums.length > 0 && h("p", "Changed outside of the workspace: ", named(sums.join(", "), 1000), ".");
  if (!trusts.length) return others && note("info", others);
  return note("warning",
    h("p", "The verdict trusts the agent's system: ", trusts.includes("/")
      ? "the suite ran in place."
      : "the suite found paths that the task does not declare. --evocode-strict carries none.",
    isVoid && " This session was strict: no case of the round counts."),
    unfolding("details", `Trusted paths (${integer(trusts.length)})`, false, () => longList(trusts, (path) => named(path, 1000))),
    others);
}

/** @param {RoundData} round */
function timesView({ index, phases, usage, agent_seconds, verifier_seconds, tool_calls }) {
  const names = Object.keys(phases).filter((name) => name !== "slot_seconds");
  return [
    names.length > 0 && stackedBars({
      title: "Seconds by phase", parts: names, format: duration,
      bars: [{ label: `Round ${index}`, values: names.map((name) => phases[name] ?? 0) }],
    }),
    terms([
      ["Agent's turn", duration(agent_seconds)],
      ["Suite", duration(verifier_seconds)],
      ["Tool calls", integer(tool_calls)],
      ["Requests to the model", usage && integer(usage.requests)],
      ["Tokens in", usage && `${integer(usage.prompt_tokens)} (${integer(usage.cached_tokens)} of them cached)`],
      ["Tokens out", usage && integer(usage.completion_tokens)],
      ["Cost", usage && money(usage.cost_usd)],
    ]),
  ];
}
