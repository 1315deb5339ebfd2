/** Score against cost, tokens or time, with the rows that no other row beats in both. */

/** @type {{[against in Pareto["against"]]: string}} */
const AGAINST = { cost_usd: "cost, $", tokens: "tokens", agent_seconds: "agent's time, s" };

/** @param {Place} place */
function spendingPart(place) {
  const { pareto } = report;
  const there = pareto.filter((each) => each.points.length > 0);
  if (!there.length) return null;
  const chosen = there.find((each) => paretoName(each) === place.settings.chart) ?? there[0];
  const rows = filteredRows(place);
  // Each ranking has a front of its own: points of two in one chart would be compared.
  const rankings = [...Map.groupBy(rows, (row) => row.ranking).values()].sort((one, other) => other.length - one.length);
  const ranking = rankings.find(([row]) => String(row.ranking) === place.settings.of) ?? rankings[0] ?? [];
  const ids = new Set(ranking.map((row) => row.id));
  const points = chosen.points.filter((point) => ids.has(point.row)).map((point) => ({
    x: point.x, y: point.y, mark: point.front, note: point.standing, label: report.row(point.row)?.name ?? point.row, href: rowLink(point.row),
  }));
  const onChart = new Set(chosen.points.map((point) => point.row));
  const without = ranking.filter((row) => !onChart.has(row.id));
  const xs = points.map((point) => point.x).filter((x) => x > 0);
  return [
    h("h2", "Score against what it takes"),
    overAll(place),
    h("div.controls", there.length > 1 && select({
        label: "Chart", value: paretoName(chosen), choices: there.map((each) => same(paretoName(each))), change: (chart) => setSettings({ chart }),
      }),
      rankings.length > 1 && select({
        label: "Ranking", value: String(ranking[0].ranking), change: (value) => setSettings({ of: value }),
        choices: rankings.map(([row, ...others]) => [String(row.ranking), `${rankingName(row, "")} (${counted(others.length + 1, "row")})`]),
      })),
    points.length === 0 ? empty("No row of this ranking has both numbers.", "Choose another ranking or amount.") : scatterChart({
      title: paretoName(chosen), x: `${AGAINST[chosen.against]} for each attempt at a task`, y: titleOf(chosen.score), points,
      // Cheap and expensive agents differ by factors; on a linear axis the cheap ones are one heap.
      logarithmic: xs.length === points.length && xs.length > 1 && Math.max(...xs) > 20 * Math.min(...xs),
    }),
    h("p.quiet", "Marked rows are on the Pareto front: no other row scores as much for less. From five tasks on, the numbers say how sure that is."),
    without.length > 0 && h("details", h("summary", `Not shown, because an amount is not known (${integer(without.length)})`), longList(without, (row) => named(row.name))),
  ];
}

/** @param {Pareto} chart */
const paretoName = ({ score: what, against }) => `${titleOf(what)} against ${AGAINST[against]}`;
