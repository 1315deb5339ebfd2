// The page of one round: its verdict and what that rests on, its cases, changes, output, process and times.

/** @type {{ [place: string]: [string, string]}} */
const RESTS_ON = {
  separate: [
    "separate",
    "The suite ran in the task's image as it was built, apart from the program. Nothing that the agent made was there, so it can have changed nothing that the verdict rests on.",
  ],
  artifacts: [
    "artifacts",
    "The suite had an environment for itself, made from the verifier's own image or the task's as built. Of what the agent made, only the declared artifacts were there: files and links within them, without rights.",
  ],
  clean: [
    "clean",
    "The suite ran in the task's image as it was built, with only the working directory and the task's state carried over. Its tools are the image's; what the suite reads or imports from the working directory is the agent's.",
  ],
  fork: [
    "fork",
    "The suite ran in a copy of the agent's system, with none of its processes. What the agent changed of the image's tools was there and can steer the verdict.",
  ],
  place: [
    "place",
    "The suite ran where the agent works. What the agent changed of the image's tools, and left in its system, was there and can steer the verdict.",
  ],
};

/** The round that is shown, for keys. @type {{ attempt: AttemptData, round: RoundData } | null} */
let shownRound = null;
/** @param {1 | -1} direction */
const toRound = (direction) => shownRound && goToRound(shownRound.attempt, shownRound.round, direction, "round");

definePage({
  name: "round",
  title: "",
  async show(main, place, left) {
    shownRound = null;
    const [id = "", number = ""] = place.path;
    const attempt = await load(`attempts/${id}`);
    if (left.aborted) return;
    const round = attempt.rounds.find((each) => each.index === Number(number));
    if (!round) {
      heading(main, `Round ${number}`, roundTrail(attempt));
      main.append(
        empty(`This attempt has no record of a round ${number}.`, "Choose one of its rounds on the attempt's page."),
        attemptProblems(attempt),
      );
      return;
    }
    shownRound = { attempt, round };
    heading(main, `Round ${round.index}: ${round.name}`, roundTrail(attempt));
    main.append(roundLinks(attempt, round, "round"), verdictView(round), roundTabs(attempt, round, place, left));
  },
  keys: {
    ">": { help: "Next round", run: () => void toRound(1) },
    "<": { help: "Previous round", run: () => void toRound(-1) },
    t: {
      help: "Trajectory of the round",
      run: () => shownRound && go(link("trajectory", [shownRound.attempt.id, shownRound.round.index])),
    },
  },
});

/** @param {AttemptData} attempt @param {RoundData} round @param {Place} place @param {AbortSignal} left */
function roundTabs(attempt, round, place, left) {
  const path = [attempt.id, round.index];
  /** @param {number} step */
  const toStep = (step) => link("trajectory", path, { step: String(step) });
  const failing = round.cases.filter(isFailing).length;
  const { changes, process } = round;
  return tabs({
    label: "About this round",
    place,
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
      "It is for agents whose actions are recorded: the shell agent, installed CLIs and commands. Run one of these.",
    );
  }
  if (!changes.length) return note("info", "The workspace is the same after this round as before it.");
  return fileChanges(changes, round.trajectory ? { step } : {});
}

/** @param {RoundData} round */
function verdictView(round) {
  const kinds = caseKinds(round.cases);
  const [passed, of] = round.counts;
  const sign = { passed: "✓", failed: "✗", error: "!" }[/** @type {string} */ (round.outcome)] ?? "·";
  const tone = { passed: "good", failed: "bad", error: "bad" }[/** @type {string} */ (round.outcome)] ?? "";
  const minus = of - passed;
  return h(
    "section",
    { class: "verdict", "aria-label": "Verdict" },
    h(
      "p",
      { class: `outcome ${tone}` },
      h("b", null, `${sign} ${capital(cellName(round.cell))}`),
      of > 0 && ` · ${integer(passed)} of ${integer(of)} cases passed`,
      kinds && minus > 0 && `: ${kinds}`,
    ),
    round.cause && h("div", { class: "cause" }, shownText(round.cause, { tag: "pre", limit: 4000 })),
    terms([
      ["Reward", rewardText(round)],
      ["Timeout", round.timed_out && (round.timed_out === "agent" ? "of the agent's turn" : "of the suite")],
      ["Turn was stopped", round.stopped && shownText(round.stopped, { tag: "span", limit: 500 })],
      ["Repeats", repeatsView(round)],
      ["Artifacts", round.artifacts.length > 0 && inlineTexts(round.artifacts)],
      ["Rests on", restsOnView(round)],
    ]),
    round.flags.map((flag) => note("warning", shownText(flag, { tag: "span", limit: 1000 }))),
    changedToolsNote(round),
  );
}

/** @param {string} text */
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** @param {RoundData} round @returns {Child} */
function rewardText(round) {
  if (round.reward === null) return null;
  const others = Object.entries(round.rewards).filter(([key]) => key !== "reward");
  return [
    numberText(round.reward),
    others.map(([key, value]) => [", ", shownText(key, { tag: "span", limit: 100 }), ` ${numberText(value)}`]),
  ];
}

/** A number with as many digits as it has, four after the point at most. @param {number} value */
const numberText = (value) => value.toLocaleString("en", { maximumFractionDigits: 4 });

/** @param {RoundData} round @returns {Child} */
function repeatsView({ repeats }) {
  if (!repeats) return null;
  return [
    `The suite ran ${integer(repeats.times)} times and passed ${integer(repeats.passed)} times. `,
    repeats.flaky && [badge("flaky", "Runs on the same files had different verdicts", "warning"), " "],
    repeats.differing.length > 0 && ["They differ in ", inlineTexts(repeats.differing)],
  ];
}

/** @param {RoundData} round @returns {Child} */
function restsOnView(round) {
  if (round.outcome === "not reached" || round.outcome === "under way") return null;
  const [word, meaning] = RESTS_ON[round.rests_on ?? ""] ?? ["not known", "The record does not say where the suite ran."];
  return [h("b", null, word), `. ${meaning}`];
}

/** @param {RoundData} round */
function changedToolsNote(round) {
  const { changed_tools: tools, changed_counts: counts, rests_on: place } = round;
  const sums = Object.entries(counts).map(([kind, count]) => `${integer(count)} ${kind}`);
  const others = sums.length > 0 && h("p", null, "Changed outside of the workspace: ", shownText(sums.join(", "), { tag: "span" }), ".");
  if (!tools.length) return others && note("info", others);
  const steered = place !== "separate" && place !== "artifacts";
  return note(
    steered ? "warning" : "info",
    h(
      "p",
      null,
      steered
        ? "The verdict rests on tools that the agent changed. Look at them before you trust it; --evocode-strict fails such rounds."
        : "The agent changed tools of the image. The suite did not run with them.",
      round.void && " This session was strict: no case of the round counts.",
    ),
    h(
      "details",
      null,
      h("summary", null, `Changed tools (${integer(tools.length)})`),
      h("ul", null, tools.slice(0, 500).map((tool) => h("li", null, shownText(tool, { tag: "span", limit: 500 })))),
    ),
    others,
  );
}

/** @param {string[]} texts @returns {Child} */
function inlineTexts(texts) {
  const shown = texts.slice(0, 50).map((text, place) => [place > 0 && ", ", shownText(text, { tag: "span", limit: 200 })]);
  return [shown, texts.length > 50 && ` and ${integer(texts.length - 50)} more`];
}

/** @param {RoundData} round */
function timesView(round) {
  const { phases, usage } = round;
  const names = Object.keys(phases).filter((name) => name !== "slot_seconds");
  return h(
    "div",
    null,
    names.length > 0 &&
      stackedBars({
        title: "Seconds by phase",
        parts: names,
        bars: [{ label: `Round ${round.index}`, values: names.map((name) => phases[name] ?? 0) }],
        format: duration,
      }),
    terms([
      ["Agent's turn", duration(round.agent_seconds)],
      ["Suite", duration(round.verifier_seconds)],
      ["Tool calls", integer(round.tool_calls)],
      ["Requests to the model", usage && integer(usage.requests)],
      ["Tokens in", usage && `${integer(usage.prompt_tokens)} (${integer(usage.cached_tokens)} of them cached)`],
      ["Tokens out", usage && integer(usage.completion_tokens)],
      ["Cost", usage && money(usage.cost_usd)],
    ]),
  );
}
