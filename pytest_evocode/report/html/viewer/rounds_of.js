// What the pages of an attempt, a round and a trajectory share: where they lead back to, and to the next round.

/** What an address of a round names. @param {Place} place */
async function loadedRound({ path: [id = "", number = ""] }) {
  const attempt = await load(`attempts/${id}`);
  return { attempt, number, round: attempt.rounds.find((each) => each.index === Number(number)) };
}

/** Links from the overview down to a round. @param {AttemptData} attempt @param {RoundData} [round]
 * @returns {[string, string][]} */
function roundTrail(attempt, round) {
  const trail = attemptTrail(attempt);
  trail.push([attemptTitle(attempt), link("attempt", [attempt.id])]);
  if (round) trail.push([`Round ${round.index}`, link("round", [attempt.id, round.index])]);
  return trail;
}

/** What was played, and where: the same in another environment is another. @param {string} name @param {string} environment */
const playedIn = (name, environment) => name + (environment && `, in ${environment}`);

/** @param {AttemptData} attempt */
const attemptTitle = ({ agent, attempt, environment }) => playedIn(`${agent}, attempt ${attempt}`, environment);

/** @param {AttemptData} attempt @returns {[string, string][]} */
function attemptTrail(attempt) {
  const task = report.task(attempt.task);
  return [
    ["Overview", link("overview")],
    [attempt.task, task ? link("task", [task.id]) : link("overview")],
  ];
}

/** The recorded round before or after one. @param {AttemptData} attempt @param {RoundData} round
 * @param {1 | -1} direction */
function besideRound(attempt, round, direction) {
  const others = attempt.rounds.filter((each) => (each.index - round.index) * direction > 0);
  others.sort((one, other) => (one.index - other.index) * direction);
  return others[0];
}

/** @param {AttemptData} attempt @param {RoundData} round @param {string} page */
function roundKeys(attempt, round, page) {
  /** @param {1 | -1} direction */
  const to = (direction) => () => {
    const other = besideRound(attempt, round, direction);
    if (other) go(link(page, [attempt.id, other.index]));
  };
  return { ">": { help: "Next round", run: to(1) }, "<": { help: "Previous round", run: to(-1) } };
}

/** Previous and next round, and the other page of this one. @param {AttemptData} attempt @param {RoundData} round
 * @param {"round" | "trajectory"} page */
function roundLinks(attempt, round, page) {
  const before = besideRound(attempt, round, -1);
  const after = besideRound(attempt, round, 1);
  const path = [attempt.id, round.index];
  return h(
    "nav.round-links",
    { label: "Rounds of this attempt" },
    before && h("a", { href: link(page, [attempt.id, before.index]), title: "Key: <" }, `‹ Round ${before.index}`),
    after && h("a", { href: link(page, [attempt.id, after.index]), title: "Key: >" }, `Round ${after.index} ›`),
    page === "trajectory" && anchor(link("round", path), "Verdict of this round"),
    page === "round" &&
      round.trajectory &&
      anchor(link("trajectory", path), `Trajectory (${integer(round.trajectory.steps)} steps)`),
  );
}

