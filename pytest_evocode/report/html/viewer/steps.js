// One step of a trajectory as an element.

const STEP_LIMIT = 2000;
const SHOWN_KINDS = /** @type {const} */ (["text", "reasoning", "calls", "outputs", "changes", "copied"]);
/** @type {{ [source: string]: [string, string]}} */
const SOURCES = { agent: ["A", "Agent"], user: ["U", "User"], system: ["S", "System"] };

/** @typedef {{ pillar: string, measure: string, evidence: Evidence }} StepEvidence */
/** @typedef {{ hidden: Set<string>, selected: number | null, hit: StepHit | null, evidence: Map<number, StepEvidence[]>,
 *   href(step: number): string, pillar(pillar: string, measure: string): string, select(step: number): void }} StepContext */

/** @param {Step} step */
const isEdit = (step) => step.calls.some((call) => call.purpose === "edit" || call.changes.length > 0);
/** @param {Step} step */
const isTest = (step) => step.calls.some((call) => call.purpose === "test");
/** @param {Step} step */
const isFailure = (step) => step.calls.some((call) => call.exit_code !== null && call.exit_code !== 0);

/** The arguments of a call as texts with names; a shell command alone needs none.
 * @param {Call} call @returns {[string, string][]} */
const callArguments = (call) => entries(call.arguments).map(([name, value]) => [
  name,
  typeof value === "string" ? value : JSON.stringify(value, null, 1) ?? "",
]);

/** What a search goes through, in the order in which it is shown. @param {Step} step @returns {Iterable<[string, string]>} */
function* stepTexts(step) {
  yield ["reasoning", step.reasoning];
  yield ["text", step.text];
  for (const remark of step.remarks) yield ["remark", remark];
  for (const call of step.calls) {
    yield ["call", call.name];
    for (const [, text] of callArguments(call)) yield ["call", text];
    yield ["output", call.output];
    for (const change of call.changes) {
      yield ["change", change.path];
      yield ["change", change.diff];
    }
  }
}

/** @param {Step} step */
const copiedBadge = (step) => step.copied && badge("copied", "Repeats a step of an earlier round as context");

/** @param {Step} step @param {StepContext} context */
function stepView(step, context) {
  const { hidden } = context;
  const [letter, source] = SOURCES[step.source] ?? ["?", step.source];
  const folded = step.copied && hidden.has("copied");
  const selected = context.selected === step.id;
  const facts = [
    step.time && timeOfDay(step.time),
    step.model && named(step.model),
    (step.prompt_tokens ?? step.completion_tokens) !== null && `${integer(step.prompt_tokens)} tokens in, ${integer(step.completion_tokens)} out`,
    step.cost_usd !== null && money(step.cost_usd),
  ].filter(Boolean);
  return h(
    `div.step.from-${step.source}${selected ? ".selected" : ""}${folded ? ".folded" : ""}`,
    h(
      "div.step-head",
      h("span.step-source", UNHEARD, letter),
      h(
        "h2",
        h(
          "a",
          {
            href: context.href(step.id),
            "aria-current": selected ? "step" : null,
            title: "Permalink to this step",
            onclick: () => context.select(step.id),
          },
          `${source}, step ${step.id}`,
        ),
      ),
      copiedBadge(step),
      isEdit(step) && badge("edit", "Changes files"),
      isTest(step) && badge("test", "Runs tests"),
      isFailure(step) && badge("failed", "A command ended with another exit code than 0", "bad"),
      h("span.step-facts", facts.map((fact) => h("span", (fact)))),
    ),
    selected && context.hit && h("p", `Found in ${context.hit.field}: `, hitExcerpt(context.hit)),
    (context.evidence.get(step.id) ?? []).map((each) => evidenceOfStep(each, context)),
    !folded && step.remarks.map((remark) => note("warning", named(remark, 1000))),
    !folded && stepBody(step, hidden),
  );
}

/** @param {StepEvidence} each @param {StepContext} context */
const evidenceOfStep = (each, context) => h(
  "p",
  anchor(context.pillar(each.pillar, each.measure), `Evidence for ${pillarTitle(each.pillar)}, ${each.measure}`),
  ": ",
  named(each.evidence.what),
);

/** @param {Step} step @param {Set<string>} hidden @returns {Child} */
const stepBody = (step, hidden) => [
  !hidden.has("reasoning") &&
    step.reasoning &&
    h("details.reasoning", { open: true }, h("summary", "Reasoning"), stepText(step.reasoning)),
  !hidden.has("text") && step.text && stepText(step.text),
  step.calls.map((call) => callView(call, hidden)),
];

/** @param {string} text @param {boolean} [ansi] */
const stepText = (text, ansi = false) => shownText(text, { limit: STEP_LIMIT, ansi });

/** @param {Call} call @param {Set<string>} hidden @returns {Child} */
function callView(call, hidden) {
  const calls = !hidden.has("calls");
  const output = !hidden.has("outputs") && call.output;
  const changes = !hidden.has("changes") && call.changes.length > 0;
  if (!calls && !output && !changes) return null;
  const given = callArguments(call);
  const alone = given.length === 1 && given[0]?.[0] === "command";
  return h(
    "div.call",
    h(
      "h3",
      named(call.name),
      call.purpose && call.purpose !== "other" && [" ", badge(call.purpose, "What the call is for")],
      exitBadge(call.exit_code),
      call.seconds !== null && h("span.step-facts", duration(call.seconds)),
    ),
    calls &&
      given.map(([name, text]) => [
        !alone && h("div.label", named(name)),
        h("div.argument", stepText(text)),
      ]),
    output && [h("div.label", "Output"), h("div.output", stepText(call.output, true))],
    changes && fileChanges(call.changes),
  );
}

/** @param {number | null} code @returns {Child} */
function exitBadge(code) {
  if (code === null) return null;
  return [" ", badge(`exit ${code}`, code ? "The command failed" : "The command succeeded", code ? "bad" : "good")];
}
