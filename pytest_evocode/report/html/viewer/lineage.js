/** Life spans: requirements and cases of a task over its rounds, a lane for each attempt. */

/** @typedef {{task: TaskSummary, data: TaskData, attempts: AttemptSummary[]}} Life
 * @typedef {TaskData["requirements"][number]} Requirement
 * @typedef {TaskData["cases"][number] & {index: number}} NumberedCase */

/** States of a lane: those of cases, and " " for not required, "-" for no verdict. The first that any case has counts. */
const WORST = "rncsp";
const FAILING = "rncs";
/** @type {{[state: string]: string}} */
const STATES = {
  p: "passed", r: "regression: passed in an earlier round of this attempt", n: "new miss: first required in this round",
  c: "carried: required before, never passed", s: "stale: what these replace is still there",
  k: "skipped", ".": "not run", "-": "no verdict", " ": "not required",
};

/** What each attempt's rounds say of the cases, by attempt.
 * @param {Life} life @param {string} attempt */
const verdictsOf = ({ data }, attempt) => data.attempts.find((each) => each.id === attempt)?.rounds ?? {};

/** The worst of some states, "." if no case was run. @param {string} states */
const worstOf = (states) => [...WORST].find((state) => states.includes(state)) ?? ".";

/** @param {Life} life @param {string} attempt @param {Requirement} requirement */
function requirementStates(life, attempt, { introduced, retired, cases }) {
  const verdicts = verdictsOf(life, attempt);
  return life.task.rounds.map((_, at) => {
    const found = verdicts[at + 1];
    const gone = retired !== null && at + 1 >= retired;
    if (at + 1 < introduced) return " ";
    if (found === undefined) return gone ? " " : "-";
    const worst = worstOf(cases.map((index) => found[index]).join(""));
    return gone && worst !== "s" ? " " : worst;
  }).join("");
}

/** @param {Life} life @param {string} attempt @param {number} index */
function caseStates(life, attempt, index) {
  const verdicts = verdictsOf(life, attempt);
  return life.task.rounds.map((_, at) => (verdicts[at + 1] === undefined ? "-" : verdicts[at + 1][index] ?? ".")).join("");
}

/** Rounds in which something that held broke, and in which it was repaired or met at last.
 * @param {string} states */
function breaks(states) {
  const found = { missed: false, met: 0, broken: /** @type {number[]} */ ([]), repaired: /** @type {number[]} */ ([]) };
  let before = "";
  for (let round = 1; round <= states.length; round += 1) {
    const state = states[round - 1];
    if (state === "p") {
      if (before === "f") found.met ? found.repaired.push(round) : (found.met = round);
      found.met ||= round;
    } else if (FAILING.includes(state)) {
      if (before === "p") found.broken.push(round);
      found.missed ||= !found.met;
    } else continue;
    before = state === "p" ? "p" : "f";
  }
  return found;
}

/** What a lane shows, in words.
 * @param {string} states */
function lifeInWords(states) {
  const { missed, met, broken, repaired } = breaks(states);
  if (!met) return missed ? "never met" : "no verdict";
  /** @param {string} what @param {number[]} rounds */
  const part = (what, rounds) => rounds.length > 0 && `${what} in ${rounds.slice(0, 4).join(", ")}${rounds.length > 4 ? " …" : ""}`;
  return [missed && `missed, met in ${met}`, part("broken", broken), part("repaired", repaired)].filter(Boolean).join("; ") || "always met";
}

/** Heights of bars by state: lanes of many rounds have no room for letters. @type {{[state: string]: number}} */
const HEIGHTS = { p: 6, r: 16, n: 12, c: 9, s: 3 };

/** A lane: what held from when to when, as bars with a letter where a failure begins, and a tick where it ends.
 * @param {string} states @param {string} label @param {number} [least] width */
function lane(states, label, least = 96) {
  const words = lifeInWords(states);
  // Of more rounds than pixels, each bar stands for several: the worst of them.
  if (states.length > 640) states = coarse(states, Math.ceil(states.length / 320));
  const width = Math.min(Math.max(states.length * 16, least), 320);
  const step = width / Math.max(states.length, 1);
  const { met, missed, repaired } = breaks(states);
  const ends = missed ? [met, ...repaired] : repaired;
  /** @type {SVGElement[]} */
  const parts = [];
  for (let from = 0; from < states.length;) {
    let to = from + 1;
    while (to < states.length && states[to] === states[from]) to += 1;
    const state = states[from];
    const height = HEIGHTS[state] ?? 1;
    if (state !== " ") {
      parts.push(svg(`rect.state-${HEIGHTS[state] ? state : "none"}`, { x: from * step, y: 8 - height / 2, width: Math.max((to - from) * step - (step > 3 ? 1 : 0), 1), height }));
    }
    const sign = FAILING.includes(state) ? state.toUpperCase() : ends.includes(from + 1) ? "✓" : "";
    if (sign && step >= 12) parts.push(svg(`text.state-${state}`, { x: (from + 0.5) * step, y: 12, "text-anchor": "middle" }, sign));
    from = to;
  }
  return svg("svg.lane", { role: "img", label: label && `${label}: ${words}`, "aria-hidden": label ? null : "true", width, height: 16, viewBox: `0 0 ${width} 16` }, parts);
}

/** @param {string} states @param {number} size of the groups */
const coarse = (states, size) => states.replace(new RegExp(`.{1,${size}}`, "g"), (part) => (worstOf(part) === "." ? part.charAt(0) : worstOf(part)));

/** The attempts that have lanes: the chosen one, or the first of each row.
 * @param {Life} life @param {Place} place */
function laneAttempts({ attempts }, place) {
  const chosen = attempts.filter((one) => one.id === place.settings.attempt);
  if (chosen.length) return chosen;
  return [...Map.groupBy(attempts, (one) => one.row || one.id).values()].map(([first]) => first).slice(0, 4);
}

/** @template T
 * @param {AttemptSummary[]} attempts
 * @param {(attempt: string, item: T) => string} states
 * @returns {Column<T>[]} */
const laneColumns = (attempts, states) => attempts.map((one) => {
  const title = attemptLabel(one);
  return {
    title, help: "Sorts by how often it broke",
    /** @param {T} item */
    value: (item) => breaks(states(one.id, item)).broken.length,
    /** @param {T} item */
    cell: (item) => {
      const its = states(one.id, item);
      return h("span.lane-cell", lane(its, title), h("small.quiet", lifeInWords(its)));
    },
  };
});

const laneLegend = () =>
  h("p.lane-legend", [..."prncs"].map((state) => h("span", lane(state, "", 16), ` ${STATES[state]} `)), h("span", "✓ met at last, or repaired"));

/** @param {Life} life @param {Place} place */
function requirementsPart(life, place) {
  const title = h("h2", "Requirements");
  const { data, attempts } = life;
  if (!data.requirements.length) return [title, empty("Cases of this task name no requirement.", "Add it to the cases; see the docs of native suites.")];
  /** @type {Column<Requirement>[]} */
  const columns = [
    textColumn("Requirement", (one) => one.id),
    ...laneColumns(laneAttempts(life, place), (attempt, /** @type {Requirement} */ one) => requirementStates(life, attempt, one)),
    countColumn("From round", (one) => one.introduced),
    countColumn("Retired in", (one) => one.retired),
    textColumn("Kinds", (one) => one.kinds.join(", ")),
    countColumn("Cases", (one) => one.cases.length),
  ];
  const choices = attempts.slice(0, 300).map((one) => /** @type {[string, string]} */ ([one.id, attemptLabel(one)]));
  return [
    title,
    attempts.length > 1 && h("div.controls", settingSelect("Attempt", "attempt", [["", "the first of each agent"], ...choices])),
    laneLegend(),
    table({ caption: "Life spans of requirements over the rounds", columns, items: data.requirements, sort: "From round" }),
  ];
}

/** @param {Life} life */
const casesHead = ({ data }) =>
  data.cases.length > 0 && [h("h2", "Cases"), h("div.controls", settingSearch("Find cases", "find"))];

/** One case through all rounds and attempts.
 * @param {Life} life @param {Place} place @param {AbortSignal} left */
function lineagePart(life, place, left) {
  const id = place.settings.case;
  if (id === undefined) return null;
  const { data, task, attempts } = life;
  const index = data.cases.findIndex((each) => each.id === id);
  const close = h("button", { onclick: () => setSettings({ case: null }) }, "Close");
  if (index < 0) return h("section.panel", note("warning", "No attempt at this task has a case ", named(id), ". "), close);
  const found = data.cases[index];
  const title = goToPart(h("h3", named(found.id)), left);
  const rows = attempts.map((one) => {
    const states = caseStates(life, one.id, index);
    return {
      label: attemptLabel(one), href: link("attempt", [one.id]), cells: states, first: states.search(/[rncs]/),
      /** @param {number} at */
      titles: (at) => `round ${at + 1}: ${own(STATES, states[at]) ?? "not run"}`,
      /** @param {number} at */
      hrefs: (at) => link("round", [one.id, at + 1], { case: found.id }),
    };
  });
  return h("section.panel", { label: "Case" },
    h("div.panel-head", title, close),
    facts([
      ["Intent", found.intent && named(found.intent, 1000)], ["Requirement", found.requirement !== null && named(data.requirements[found.requirement]?.id ?? "")],
      ["Kind", found.kind && named(found.kind)], ["From", found.origin && named(found.origin)],
    ]),
    rows.length ? [cellLegend("prncs"), cellGrid({
      caption: "This case in each round", rows, left, columns: task.rounds.length,
    })] : empty("No attempt has a verdict on it.", "Run the task."));
}

/** @param {Life} life @param {Place} place */
function casesPart(life, place) {
  const { data } = life;
  if (!data.cases.length) return null;
  const has = wordSearch(place.settings.find);
  /** @param {NumberedCase} one */
  const requirement = (one) => (one.requirement === null ? "" : data.requirements[one.requirement]?.id ?? "");
  const items = data.cases.map((one, index) => ({ ...one, index })).filter((one) => has(`${one.id} ${requirement(one)} ${one.kind} ${one.origin} ${one.intent}`));
  /** @param {NumberedCase} one */
  const address = (one) => here({ case: one.id });
  /** @type {Column<NumberedCase>[]} */
  const columns = [
    textColumn("Case", (one) => one.id),
    ...laneColumns(laneAttempts(life, place), (attempt, /** @type {NumberedCase} */ one) => caseStates(life, attempt, one.index)),
    textColumn("Requirement", requirement),
    textColumn("Kind", (one) => one.kind),
    { title: "From", help: "The round that brings it", value: (one) => one.origin },
  ];
  return table({ caption: "Cases over the rounds", columns, items, open: address, empty: "No case matches. Clear the search to see all." });
}
