// The cases of a round: those that failed by kind, each with what was expected and what came, and the passed ones.

/** @type {[string, string, string][]} */
const CASE_GROUPS = [
  ["new miss", "New misses", "first required in this round"],
  ["regression", "Regressions", "passed in an earlier round of this attempt"],
  ["stale", "Stale", "what these requirements replace is still there"],
  ["carried", "Carried", "failed in the round before, too"],
  ["", "Failed", "of no known kind"],
];
/** Cases of a group that are listed at first, and how many of all are open. */
const LISTED_CASES = 100;
const OPEN_CASES = 3;

/** @param {CaseData} each */
const isFailing = (each) => each.status === "failed" || each.status === "error";

/** How many cases failed of each kind, in words. @param {CaseData[]} cases */
const caseKinds = (cases) => CASE_GROUPS.map(([kind, title]) => {
  const count = cases.filter((each) => isFailing(each) && (each.failure ?? "") === kind).length;
  return count && `${integer(count)} ${count === 1 && kind ? kind : title.toLowerCase()}`;
})
  .filter(Boolean)
  .join(", ");

/** @param {AttemptData} attempt @param {RoundData} round @param {Place} place */
function casesView(attempt, round, place) {
  if (!round.cases.length) {
    return empty("This round has no cases.", round.output ? "See what the suite printed." : "See the verdict above for the cause.");
  }
  const wanted = place.settings.case ?? null;
  const groups = h("div");
  const filter = h("input", { type: "search", id: "case-filter", "data-search": true, value: place.settings.filter ?? "" });
  const draw = () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    const chosen = round.cases.filter((each) => {
      const text = `${each.id} ${each.requirement} ${each.kind} ${each.origin} ${each.intent}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const open = { left: wanted ? 0 : OPEN_CASES };
    groups.replaceChildren(
      ...CASE_GROUPS.map(([kind, title, help]) =>
        caseGroup(attempt, round, title, help, chosen.filter((each) => isFailing(each) && (each.failure ?? "") === kind), wanted, open),
      ),
      caseGroup(attempt, round, "Skipped", "did not run", chosen.filter((each) => each.status === "skipped"), wanted, { left: 0 }),
      passedCases(chosen.filter((each) => each.status === "passed"), round, place, wanted),
    );
    if (!chosen.length) groups.append(empty("No case has these words.", "Clear the filter."));
  };
  filter.addEventListener("input", () => {
    draw();
    setSettings({ filter: filter.value || null }, { replace: true, quiet: true });
  });
  draw();
  if (wanted !== null) {
    // The page is filled before it is shown, and scrolls only then.
    requestAnimationFrame(() => groups.querySelector(".case.selected")?.scrollIntoView({ block: "center" }));
  }
  return h(
    "div.cases",
    round.cases.length > 5 && h("p", h("label", { for: "case-filter" }, "Filter cases "), filter),
    groups,
  );
}

/** @param {AttemptData} attempt @param {RoundData} round @param {string} title @param {string} help
 * @param {CaseData[]} cases @param {string | null} wanted @param {{ left: number }} open */
function caseGroup(attempt, round, title, help, cases, wanted, open) {
  if (!cases.length) return "";
  const list = h("div");
  /** @param {CaseData[]} some */
  const add = (some) =>
    list.append(...some.map((each) => caseView(attempt, round, each, each.id === wanted, open.left-- > 0)));
  const at = cases.findIndex((each) => each.id === wanted);
  const first = Math.max(LISTED_CASES, at + 1);
  add(cases.slice(0, first));
  if (cases.length > first) {
    const more = h("button", `Show ${integer(cases.length - first)} more`);
    more.addEventListener("click", () => {
      more.remove();
      add(cases.slice(first));
    });
    list.append(more);
  }
  return h("section", h("h2", `${title} (${integer(cases.length)})`, h("small", ` ${help}`)), list);
}

/** @param {AttemptData} attempt @param {RoundData} round @param {CaseData} each @param {boolean} selected
 * @param {boolean} open */
function caseView(attempt, round, each, selected, open) {
  let filled = false;
  const element = h(
    "details.case",
    { class: selected && "selected", open: open || selected },
    h(
      "summary",
      h("span.case-id", named(each.id)),
      each.requirement && [" ", named(each.requirement)],
      each.kind && [" ", badge(each.kind, "Kind of the case")],
      each.status === "error" && [" ", badge("error", "The case itself broke down", "bad")],
      (each.intent || each.scenario) &&
        h("span.intent", named(each.intent || each.scenario)),
    ),
  );
  const fill = () => {
    if (filled || !element.open) return;
    filled = true;
    element.append(caseBody(attempt, round, each));
  };
  element.addEventListener("toggle", fill);
  fill();
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
  return h(
    "div.case-body",
    introducedView(attempt, round, each),
    terms([
      ["Required since", each.origin && named(each.origin)],
      ["Scenario", each.scenario && each.intent && shownText(each.scenario, { tag: "div", limit: 3000 })],
      ["Input", each.input && shownText(each.input, { limit: 5000 })],
      [
        expected && actual ? "Expected against actual" : expected ? "Expected" : "Actual",
        expected && actual ? textDiff(expected, actual) : shownPre(expected || actual),
      ],
      ["Reason", shownPre(each.reason)],
    ]),
    h(
      "p",
      h("a", { href: link("round", [attempt.id, round.index], { case: each.id }) }, "Permalink"),
      task && [" · ", h("a", { href: link("task", [task.id], { case: each.id }) }, "This case in all rounds and attempts")],
    ),
  );
}

/** @param {string} text @returns {Child} */
const shownPre = (text) => text && shownText(text, { limit: 10000, ansi: true });

/** Who introduced a failure. @param {AttemptData} attempt @param {RoundData} round @param {CaseData} each @returns {Child} */
function introducedView(attempt, round, { introduced }) {
  if (!introduced) return null;
  const { round: index, step, why } = introduced;
  return h(
    "p.introduced",
    "The failure came in ",
    index === round.index
      ? "this round"
      : h("a", { href: link("round", [attempt.id, index], { tab: "changes" }) }, `round ${index}`),
    step !== null && [
      ", ",
      h("a", { href: link("trajectory", [attempt.id, index], { step: String(step) }) }, `step ${step}`),
    ],
    why && [": ", named(why, 1000)],
  );
}

/** @param {CaseData[]} cases @param {RoundData} round @param {Place} place @param {string | null} wanted */
function passedCases(cases, round, place, wanted) {
  if (!cases.length) return "";
  const open = cases.some((each) => each.id === wanted);
  const element = h("details.passed", { open }, h("summary", `Passed (${integer(cases.length)})`));
  let filled = false;
  const fill = () => {
    if (filled || !element.open) return;
    filled = true;
    element.append(
      table({
        caption: `Passed cases of round ${round.index}`,
        place,
        items: cases,
        columns: [
          { id: "case", title: "Case", value: (each) => each.id },
          { id: "requirement", title: "Requirement", value: (each) => each.requirement },
          { id: "kind", title: "Kind", value: (each) => each.kind },
          { id: "origin", title: "Required since", value: (each) => each.origin },
        ],
      }),
    );
  };
  element.addEventListener("toggle", fill);
  fill();
  return element;
}
