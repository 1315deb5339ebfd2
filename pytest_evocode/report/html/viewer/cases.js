/** The cases of a round: those that failed by kind, each with what was expected and what came, and the passed ones. */

/** @type {[string, string, string][]} */
const CASE_GROUPS = [
  ["new miss", "New misses", "first required in this round"],
  ["regression", "Regressions", "passed in an earlier round of this attempt"],
  ["stale", "Stale", "what these requirements replace is still there"],
  ["carried", "Carried", "required before, never passed"],
  ["", "Failed", "of no known kind"],
];
/** Cases of a group that are listed at first, and how many of all are open. */
const LISTED_CASES = 10;
const OPEN_CASES = 3;

/** @param {CaseData} each */
const isFailing = (each) => each.status === "failed" || each.status === "error";
/** @param {CaseData[]} cases @param {string} kind */
const failingOf = (cases, kind) => cases.filter((each) => isFailing(each) && (each.failure ?? "") === kind);

/** How many cases failed of each kind, in words. @param {CaseData[]} cases */
const caseKinds = (cases) => CASE_GROUPS.map(([kind, title]) => {
  const count = failingOf(cases, kind).length;
  return count && `${integer(count)} ${count === 1 && kind ? kind : title.toLowerCase()}`;
}).filter(Boolean).join(", ");

/** @param {AttemptData} attempt @param {RoundData} round @param {Place} place */
function casesView(attempt, round, place) {
  if (!round.cases.length) {
    return empty("This round has no cases.", round.output ? "See what the suite printed." : "See the verdict above for the cause.");
  }
  const wanted = place.settings.case;
  const groups = h("div");
  const filter = h("input", { type: "search", value: place.settings.filter, oninput: draw });
  function draw() {
    const has = wordSearch(filter.value);
    const chosen = round.cases.filter((each) => has(`${each.id} ${each.requirement} ${each.kind} ${each.origin} ${each.intent}`));
    const open = { left: wanted === undefined ? OPEN_CASES : 0 };
    /** @param {string} title @param {string} help @param {CaseData[]} cases */
    const group = (title, help, cases) => cases.length > 0 && h("section",
      h("h2", `${title} (${integer(cases.length)})`, h("small.quiet", ` ${help}`)),
      inPortions(h("div"), cases, (each) => caseView(attempt, round, each, each.id === wanted, open.left-- > 0),
        Math.max(LISTED_CASES, cases.findIndex((each) => each.id === wanted) + 1), cases.length));
    groups.replaceChildren();
    appendAll(groups, [
      CASE_GROUPS.map(([kind, title, help]) => group(title, help, failingOf(chosen, kind))),
      group("Skipped", "did not run", chosen.filter((each) => each.status === "skipped")),
      passedCases(chosen.filter((each) => each.status === "passed"), round, place),
      !chosen.length && empty("No case has these words.", "Clear the filter."),
    ]);
    setSettings({ filter: filter.value || null }, { replace: true, quiet: true });
  }
  draw();
  if (wanted !== undefined) scrollToSelected(groups, ".case.selected");
  return h("div", round.cases.length > 5 && h("p", h("label.field", h("span", "Filter cases"), filter)), groups);
}

/** @param {AttemptData} attempt @param {RoundData} round @param {CaseData} each @param {boolean} selected
 * @param {boolean} open */
function caseView(attempt, round, each, selected, open) {
  const intent = each.intent || each.scenario;
  const summary = [
    h("span.case-id", named(each.id)),
    each.requirement && [" ", named(each.requirement)],
    each.kind && [" ", badge(each.kind, "Kind of the case")],
    each.status === "error" && [" ", badge("error", "The case itself broke down", "bad")],
    intent && h("span.intent", named(intent)),
  ];
  const element = unfolding(`details.case${selected ? ".selected" : ""}`, summary, open || selected, () => caseBody(attempt, round, each));
  // Only what somebody opens goes into the address, not what is open from the start.
  element.querySelector("summary")?.addEventListener("click", () => {
    setSettings({ case: element.open ? null : each.id }, { replace: true, quiet: true });
  });
  return element;
}

/** @param {AttemptData} attempt @param {RoundData} round @param {CaseData} each */
function caseBody(attempt, round, each) {
  const { expected, actual } = each;
  const task = report.task(attempt.task);
  return h("div.case-body",
    introducedView(attempt, round, each),
    terms([
      ["Required since", each.origin && named(each.origin)],
      ["Scenario", each.intent && each.scenario && shownText(each.scenario, { tag: "div", limit: 3000 })],
      ["Input", printed(each.input)],
      expected && actual ? ["Expected against actual", textDiff(expected, actual)] : [expected ? "Expected" : "Actual", printed(expected || actual)],
      ["Reason", printed(each.reason)],
      ["Test", printed(each.test)],
    ]),
    h("p", anchor(link("round", [attempt.id, round.index], { case: each.id }), "Permalink"),
      task && [" · ", anchor(link("task", [task.id], { case: each.id }), "This case in all rounds and attempts")]));
}

/** @param {string} text @returns {Child} */
const printed = (text) => text && shownText(text, { limit: 10000, ansi: true });

/** Who introduced a failure. @param {AttemptData} attempt @param {RoundData} round @param {CaseData} each @returns {Child} */
function introducedView(attempt, round, { introduced }) {
  if (!introduced) return null;
  const { round: index, step, why } = introduced;
  return h("p.introduced", "The failure came in ",
    index === round.index ? "this round" : anchor(link("round", [attempt.id, index], { tab: "changes" }), `round ${index}`),
    step !== null && [", ", anchor(link("trajectory", [attempt.id, index], { step }), `step ${step}`)],
    why && [": ", named(why, 1000)]);
}

/** @param {CaseData[]} cases @param {RoundData} round @param {Place} place */
const passedCases = (cases, round, place) => cases.length > 0 && unfolding(
  "details.passed", `Passed (${integer(cases.length)})`, cases.some((each) => each.id === place.settings.case),
  () => table({
    caption: `Passed cases of round ${round.index}`,
    items: cases,
    columns: [
      textColumn("Case", (each) => each.id),
      textColumn("Requirement", (each) => each.requirement),
      textColumn("Kind", (each) => each.kind),
      textColumn("Required since", (each) => each.origin),
    ],
  }));
