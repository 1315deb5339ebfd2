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
    "div",
    { class: "process-values" },
    h(
      "p",
      null,
      "RigorScore ",
      h("b", null, score(process.score)),
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
        "details",
        { class: "pillar", open: wanted.startsWith(`${pillar}.`) },
        h(
          "summary",
          null,
          h("b", null, `${pillarTitle(pillar)} ${pillar in process.pillars ? measureValue(process.pillars[pillar]?.value) : ""}`),
          h("small", null, ` ${of(pillar).map(({ measure, value }) => `${measure} ${measureValue(value.value)}`).join(", ")}`),
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
    "section",
    { class: `measure${selected ? " selected" : ""}` },
    h(
      "h3",
      null,
      `${measure} ${measureValue(value.value)}`,
      value.certainty && [" ", badge(value.certainty, "How the value came about: run, read from the recording, or said by a model")],
    ),
    value.reason && h("p", null, shownText(value.reason, { tag: "span", limit: 1000 })),
    value.evidence.length > 0 &&
      h(
        "ul",
        null,
        value.evidence.map((each) =>
          h(
            "li",
            null,
            each.step !== null && [h("a", { href: step(each.step) }, `Step ${each.step}`), ": "],
            shownText(each.what, { tag: "span", limit: 500 }),
            each.quote && h("blockquote", null, shownText(each.quote, { tag: "span", limit: 500 })),
          ),
        ),
      ),
  );
}
