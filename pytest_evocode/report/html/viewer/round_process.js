// Process values of a round, each with its evidence and the steps that show it.

/** @param {RoundData} round @returns {{ pillar: string, measure: string, value: Measure }[]} */
function measuresOf({ process }) {
  if (!process) return [];
  return [
    ...Object.entries(process.pillars).flatMap(([pillar, { measures }]) =>
      Object.entries(measures).map(([measure, value]) => ({ pillar, measure, value })),
    ),
    ...Object.entries(process.extended).map(([measure, value]) => ({ pillar: "extended", measure, value })),
  ];
}

/** @param {string} pillar its short name */
const pillarTitle = (pillar) => (pillar === "extended" ? "Beyond the pillars" : (PILLAR_NAMES[pillar]?.[0] ?? pillar));
/** @param {number | null | undefined} value */
const measureValue = (value) => (value == null ? "n/a" : score(value, 2));

/** @param {RoundData} round @param {Place} place @param {(step: number) => string} step */
function roundProcess(round, place, step) {
  const { process } = round;
  if (!process) {
    return empty("How the agent worked was not scored.", "Run the session with --evocode-process, or run: evocode process DIR");
  }
  const wanted = place.settings.measure ?? "";
  const all = measuresOf(round);
  const names = [...new Set(all.map((each) => each.pillar))];
  /** @param {string} pillar */
  const of = (pillar) => all.filter((each) => each.pillar === pillar);
  const element = h(
    "div.process-values",
    h(
      "p",
      "RigorScore ",
      h("b", score(process.score)),
      process.edited ? "." : ". The agent changed nothing in this round, so most pillars have no value.",
    ),
    barChart({
      title: "Pillars of this round",
      bars: Object.entries(process.pillars).map(([name, { value }]) => ({ label: pillarTitle(name), value })),
      low: 0,
      high: 1,
      format: (value) => score(value, 2),
    }),
    names.map((pillar) =>
      h(
        "details.pillar",
        { open: wanted.startsWith(`${pillar}.`) },
        h(
          "summary",
          h("b", `${pillarTitle(pillar)} ${pillar in process.pillars ? measureValue(process.pillars[pillar]?.value) : ""}`),
          h("small", ` ${of(pillar).map(({ measure, value }) => `${measure} ${measureValue(value.value)}`).join(", ")}`),
        ),
        of(pillar).map((each) => measureView(each, wanted, step)),
      ),
    ),
  );
  if (wanted) requestAnimationFrame(() => element.querySelector(".measure.selected")?.scrollIntoView({ block: "center" }));
  return element;
}

/** @param {{ pillar: string, measure: string, value: Measure }} each @param {string} wanted
 * @param {(step: number) => string} step */
function measureView({ pillar, measure, value }, wanted, step) {
  const selected = wanted === `${pillar}.${measure}`;
  return h(
    "section.measure",
    { class: selected && "selected" },
    h(
      "h3",
      `${measure} ${measureValue(value.value)}`,
      value.certainty && [" ", badge(value.certainty, "How the value came about: run, read from the recording, or said by a model")],
    ),
    value.reason && h("p", named(value.reason, 1000)),
    value.evidence.length > 0 &&
      h(
        "ul",
        value.evidence.map((each) =>
          h(
            "li",
            each.step !== null && [h("a", { href: step(each.step) }, `Step ${each.step}`), ": "],
            named(each.what, 1000),
            each.quote && h("blockquote", named(each.quote, 1000)),
          ),
        ),
      ),
  );
}
