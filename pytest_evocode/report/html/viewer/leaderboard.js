/** The leaderboard: a table for each ranking, or the groups of a dimension side by side, and one row in full. */

/** @typedef {keyof ScoreValues} ScoreField */

/** Scores that are shown always. */
const mainScores = () => /** @type {ScoreField[]} */ (report.columns.main);

/** Scores that are shown when somebody asks for more. */
const moreScores = () => /** @type {ScoreField[]} */ (report.columns.more);

const allScores = () => [...mainScores(), ...moreScores()];

/** Whether a score is 0 to 100, and no number of tasks or calls. @param {string} field */
const isShare = (field) => ["%", "points"].includes(own(report.titles, field)?.unit ?? "");

/** @type {{[dimension in Dimension]: string}} */
const DIMENSIONS = {
  task: "task", activity: "activity", interaction: "interaction", change: "change type", category: "category", round: "round",
};

/** @param {string} field @param {string} [fallback] */
const titleOf = (field, fallback = field) => own(report.titles, field)?.title ?? fallback;

/** @param {string} field */
const helpOf = (field) => own(report.titles, field)?.help;

/** @template T
 * @param {{[key: string]: T} | undefined} values @param {string | undefined} key
 * @returns {T | undefined} */
const own = (values, key) => values && key !== undefined && Object.hasOwn(values, key) ? values[key] : undefined;

/** The dimension that scores are grouped by, if any.
 * @param {Place} place
 * @returns {Dimension | null} */
const dimensionOf = ({ settings }) =>
  own(DIMENSIONS, settings.by) ? /** @type {Dimension} */ (settings.by) : null;

/** The groups of a dimension in any row.
 * @param {Dimension} dimension */
function groupsOf(dimension) {
  const names = new Set(report.rows.flatMap((row) => Object.keys(row.groups[dimension] ?? {})));
  return [...names].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
}

/** @param {Place} place */
function groupControls(place) {
  const dimensions = /** @type {Dimension[]} */ (Object.keys(DIMENSIONS)).filter((each) => groupsOf(each).length > 0);
  if (!dimensions.length) return null;
  const dimension = dimensionOf(place);
  const groups = dimension ? groupsOf(dimension) : [];
  return h("div.controls", settingSelect("Scores of", "by", [["", "all rounds"], ...dimensions.map((each) => /** @type {[string, string]} */ ([each, `one ${DIMENSIONS[each]}`]))], ["group"]),
    // A choice among thousands of rounds is no choice: the rows of the table lead to each.
    dimension && groups.length <= 200 && settingSelect("Which", "group", [["", "all, side by side"], ...groups.map(same)]),
    dimension && place.settings.group === undefined && settingSelect("Score", "score", [["", titleOf("dataset_score")],
      ...allScores().slice(1).filter((field) => report.rows.some((row) => Object.values(row.groups[dimension] ?? {}).some((each) => isKnown(each[field])))).map((field) => /** @type {[string, string]} */ ([field, titleOf(field)]))]));
}

/** @param {Place} place */
function leaderboardPart(place) {
  const dimension = dimensionOf(place);
  const { group } = place.settings;
  const rows = filteredRows(place).filter((row) => !dimension || group === undefined || own(row.groups[dimension], group));
  const title = h("h2", "Leaderboard");
  if (!rows.length) return [title, empty("No row matches the filter.", "Clear it to see all rows.")];
  if (dimension && group === undefined) return [title, groupsTable(rows, dimension, place)];
  /** @param {Row} row @returns {Partial<ScoreValues>} */
  const scoresOf = (row) => (dimension ? own(row.groups[dimension], group) ?? {} : row.scores);
  const rankings = Map.groupBy(rows, (row) => row.ranking);
  // Rows that can be compared with no other would be a table each, with one line.
  const ranked = [...rankings.values()].filter((each) => each.length > 1);
  const alone = [...rankings.values()].filter((each) => each.length === 1).flat();
  if (rankings.size === 1) ranked.push(...alone.splice(0).map((row) => [row]));
  const all = place.settings.columns === "all";
  const how = { scoresOf, whole: !dimension, fields: knownFields(all ? allScores() : mainScores(), rows, scoresOf) };
  return [
    title,
    dimension && groupNote(rows, scoresOf, dimension, group),
    ranked.map((each, number) => rankingTable(each, rankingName(each[0], ranked.length > 1 ? `Ranking ${number + 1}: ` : ""), how)),
    alone.length > 0 && rankingTable(alone, ranked.length ? "Rows that can be ranked with no other" : "Rows of which no two can be ranked together", how),
    columnsToggle(all, knownFields(moreScores(), rows, scoresOf)),
    marksExplained(rows),
  ];
}

/** @typedef {(row: Row) => Partial<ScoreValues>} ScoresOf
 * @typedef {{scoresOf: ScoresOf, whole: boolean, fields: ScoreField[]}} Shown */

/** @param {Row} row @param {string} before */
function rankingName(row, before) {
  const name = `${row.mode}, ${counted(row.scores.rounds, "round")} of ${counted(row.scores.tasks, "task")}`;
  return before ? before + name : name[0].toUpperCase() + name.slice(1);
}

/** Fields of a list that any row has a value for.
 * @param {ScoreField[]} fields @param {Row[]} rows @param {ScoresOf} scoresOf */
const knownFields = (fields, rows, scoresOf) => fields.filter((field) => rows.some((row) => isKnown(scoresOf(row)[field])));

/** @param {boolean} all whether all columns are shown @param {ScoreField[]} more */
const columnsToggle = (all, more) => more.length > 0 && h("p",
  h("button", { "aria-pressed": String(all), onclick: () => setSettings({ columns: all ? null : "all" }) },
    all ? "Fewer columns" : `More columns: ${more.map((field) => titleOf(field)).join(", ")}`));

/** Which scores a group does not have.
 * @param {Row[]} rows @param {ScoresOf} scoresOf @param {Dimension} dimension @param {string} group */
function groupNote(rows, scoresOf, dimension, group) {
  const known = knownFields(allScores(), rows, scoresOf);
  const without = knownFields(allScores(), rows, (row) => row.scores).filter((field) => !known.includes(field)).map((field) => titleOf(field));
  return h("p",
    `Scores over the rounds of ${DIMENSIONS[dimension]} `, h("strong", named(group)), ", without intervals. ",
    without.length > 0 && `A ${DIMENSIONS[dimension]} has no ${without.join(", ")}. `,
    anchor(here({ by: null, group: null }), "Show the scores of all rounds"));
}

/** Ranks of rows of one ranking by what they are ranked by; equal ones share a rank.
 * @param {Row[]} rows @param {ScoresOf} scoresOf
 * @returns {Map<Row, number>} */
function ranks(rows, scoresOf) {
  /** @param {Row} row */
  const value = (row) => (row.mode === "single-round" ? scoresOf(row).sr ?? scoresOf(row).dataset_score : scoresOf(row).dataset_score);
  const scored = rows.filter((row) => isKnown(value(row))).map((row) => ({ row, value: Number(value(row)) }));
  scored.sort((one, other) => other.value - one.value);
  return new Map(scored.map(({ row, value: its }) => [row, scored.findIndex((each) => each.value === its) + 1]));
}

/** @param {Row[]} rows @param {string} caption @param {Shown} how */
function rankingTable(rows, caption, { scoresOf, whole, fields }) {
  // A filter does not make an agent better: ranks are those among all rows of the ranking.
  const rank = ranks(report.rows.filter((row) => row.ranking === rows[0].ranking), scoresOf);
  const comparable = rows.length > 1 && rows.every((row) => row.ranking === rows[0].ranking);
  const harnesses = new Set(report.rows.map((row) => row.harness)).size > 1;
  /** @type {Column<Row>[]} */
  const columns = [
    { title: "Agent", value: (row) => row.name, cell: agentCell },
    ...fields.map((field) => scoreColumn(field, scoresOf, whole)),
    { title: "k", help: "Attempts at each task", number: integer, value: (row) => row.scores.attempts_max, cell: attemptsEach },
  ];
  if (comparable) columns.unshift(countColumn("#", (row) => rank.get(row) ?? null, "Rank within this ranking"));
  else columns.push(textColumn("Mode", (row) => row.mode));
  if (harnesses) columns.push(textColumn("Harness", (row) => row.harness));
  if (whole) columns.push(...spentColumns(rows));
  const items = [...rows].sort((one, other) => (rank.get(one) ?? Infinity) - (rank.get(other) ?? Infinity) || one.name.localeCompare(other.name));
  return table({
    caption, columns, items, open: (row) => rowLink(row.id),
    csv: whole && comparable ? "csv/leaderboard.csv" : undefined,
  });
}

/** @param {ScoreField} field @param {ScoresOf} scoresOf @param {boolean} whole
 * @returns {Column<Row>} */
const scoreColumn = (field, scoresOf, whole) => ({
  title: titleOf(field), help: helpOf(field), number: score,
  value: (row) => scoresOf(row)[field] ?? null,
  cell: (row) => {
    const value = scoresOf(row)[field];
    const range = whole ? own(row.intervals, field) : undefined;
    if (own(report.titles, field)?.unit === "tasks") return score(value, value && value % 1 ? 1 : 0);
    if (field !== "dataset_score" && !(field === "sr" && row.mode === "single-round")) return score(value);
    return h("span.score-cell", intervalBar(value ?? null, range, 0, 100, `${titleOf(field)} of ${row.name}`),
      h("span", score(value)),
      range && h("small.quiet", `${score(range.low)} to ${score(range.high)}`));
  },
});

/** What else rows have that any of them knows.
 * @param {Row[]} rows
 * @returns {Column<Row>[]} */
function spentColumns(rows) {
  const mean = "Mean over tasks, for each attempt at a task";
  /** @type {Column<Row>[]} */
  const columns = [
    { title: titleOf("cost_usd", "Cost per attempt"), help: mean, number: money, value: (row) => row.spending.cost_usd },
    { title: titleOf("tokens", "Tokens per attempt"), help: mean, number: integer, value: (row) => row.spending.tokens },
    { title: titleOf("agent_seconds", "Agent time per attempt"), help: mean, number: duration, value: (row) => row.spending.agent_seconds },
    { title: "RigorScore", help: "Process discipline, 0 to 100", number: score, value: (row) => row.process?.score ?? null },
  ];
  return columns.filter(({ value }) => rows.some((row) => isKnown(value(row))));
}

/** @param {Row} row */
const attemptsEach = ({ scores: { attempts_min: least, attempts_max: most } }) =>
  least === most ? integer(most) : `${integer(least)}–${integer(most)}`;

/** The overview with a row opened.
 * @param {string} id */
const rowLink = (id) => here({ row: id });

/** @param {Row} row */
const agentCell = (row) => h("span.agent-cell", anchor(rowLink(row.id), named(row.name)),
  MARKS.filter((mark) => mark.count(row) > 0).map((mark) => badge(`${mark.sign} ${integer(mark.count(row))}`, mark.means, "warning")));

/** What a row's scores rest on that a reader has to know.
 * @type {{sign: string, count(row: Row): number, means: string}[]} */
const MARKS = [
  { sign: "* trusts", count: (row) => row.scores.trusting, means: "Verdicts that trust the agent's system: paths that the task does not declare, or all of it where the suite ran in place." },
  { sign: "! faults", count: (row) => row.faults, means: "Rounds with a fault of the infrastructure or of the agent's program; they count as not passed." },
  { sign: "† partial", count: (row) => row.partial, means: "Attempts of which not all rounds were selected; only those that were count." },
  { sign: "– missing", count: (row) => row.missing.length, means: "Attempts that were selected and left nothing; their rounds count as not passed." },
  { sign: "i notes", count: (row) => row.notes.length, means: "There is more to know: open the row." },
];

/** @param {Row[]} rows */
function marksExplained(rows) {
  const used = MARKS.filter((mark) => rows.some((row) => mark.count(row) > 0));
  return used.length > 0 && h("ul.plain-list.quiet", used.map((mark) => h("li", h("strong", mark.sign), `: ${mark.means}`)));
}

/** One score of all groups of a dimension: a line for each group, a column for each row.
 * @param {Row[]} rows @param {Dimension} dimension @param {Place} place */
function groupsTable(rows, dimension, place) {
  const field = allScores().find((each) => each === place.settings.score) ?? "dataset_score";
  /** @type {Column<string>[]} */
  const columns = [{ title: DIMENSIONS[dimension], value: (group) => (dimension === "round" ? Number(group) || group : group), cell: named }];
  for (const row of rows) {
    /** @param {string} group */
    const value = (group) => own(row.groups[dimension], group)?.[field] ?? null;
    const cell = isShare(field) ? { cell: (/** @type {string} */ group) => shareCell(value(group), score(value(group))) } : {};
    columns.push({ title: row.name, number: score, value, ...cell });
  }
  return table({
    caption: `${titleOf(field)} by ${DIMENSIONS[dimension]}`, columns, items: groupsOf(dimension),
    open: (group) => here({ group }),
  });
}

/** A share, 0 to 100, on a ground that is the darker the larger it is.
 * @param {number | null} value @param {string} text */
const shareCell = (value, text) => style(h("span.share", text), { "--share": `${value ?? 0}%` });
