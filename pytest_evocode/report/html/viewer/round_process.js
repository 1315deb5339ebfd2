/** Process values of a round, each with its evidence and the steps that show it. */

/** @typedef {{ pillar: string, measure: string, value: Measure }} NamedMeasure */

/** @param {RoundData} round @returns {NamedMeasure[]} */
function measuresOf({ process }) {
  /** @param {string} pillar @param {{ [name: string]: Measure }} measures */
  const named = (pillar, measures) => entries(measures).map(([measure, value]) => ({ pillar, measure, value }));
  return process ? [...entries(process.pillars).flatMap(([pillar, { measures }]) => named(pillar, measures)), ...named("extended", process.extended)] : [];
}

/** @param {string} pillar its short name */
const pillarTitle = (pillar) => (pillar === "extended" ? "Beyond the pillars" : (PILLAR_NAMES[pillar]?.[0] ?? pillar));
/** @param {number | null | undefined} value */
const measureValue = (value) => (value == null ? "n/a" : score(value, 2));
/** @param {NamedMeasure[]} measures */
const measuresInShort = (measures) => h("small.quiet", ` ${measures.map(({ measure, value }) => `${measure} ${measureValue(value.value)}`).join(", ")}`);

/** @param {RoundData} round @param {Place} place @param {(step: number) => string} step */
function roundProcess(round, place, step) {
  const { process } = round;
  if (!process) return empty("How the agent worked was not scored.", "Run the session with --evocode-process, or run: evocode process DIR");
  const wanted = place.settings.measure ?? "";
  const element = h("div",
    h("p", "RigorScore ", h("b", score(process.score)), process.edited ? "." : ". The agent changed nothing in this round, so most pillars have no value."),
    barChart("Pillars of this round", entries(process.pillars).map(([name, { value }]) => ({ label: pillarTitle(name), value }))),
    [...Map.groupBy(measuresOf(round), (each) => each.pillar)].map(([pillar, measures]) => h("details.pillar", { open: wanted.startsWith(`${pillar}.`) },
      h("summary", h("b", `${pillarTitle(pillar)} ${pillar in process.pillars ? measureValue(process.pillars[pillar]?.value) : ""}`), measuresInShort(measures)),
      measures.map((each) => measureView(each, wanted, step)))));
  if (wanted) scrollToSelected(element, ".measure.selected");
  return element;
}

/** @param {NamedMeasure} each @param {string} wanted @param {(step: number) => string} step */
const measureView = ({ pillar, measure, value }, wanted, step) => h("section.measure", { class: wanted === `${pillar}.${measure}` && "selected" },
  h("h3", `${measure} ${measureValue(value.value)}`,
    value.certainty && [" ", badge(value.certainty, "How the value came about: run, read from the recording, or said by a model")]),
  value.reason && h("p", named(value.reason, 1000)),
  value.evidence.length > 0 && longList(value.evidence, (each) => [
    each.step !== null && [anchor(step(each.step), `Step ${each.step}`), ": "],
    named(each.what, 1000),
    each.quote && h("blockquote", named(each.quote, 1000)),
  ]));
