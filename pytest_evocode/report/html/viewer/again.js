/** Commands that run a round again or look into it, for copying. */

/** A word as a POSIX shell takes it. @param {string} text */
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** @param {AttemptData} attempt @param {RoundData} round @returns {[string, string, string][]} what for, what to know, and the command */
function roundCommands(attempt, round) {
  if (!round.node_id) return [];
  const { spec, options } = attempt.made_by;
  const agent = quoted(typeof spec === "string" ? spec : attempt.agent);
  const words = entries(options && typeof options === "object" ? options : {})
    .map(([name, value]) => ` --evocode-agent-option=${quoted(`${name}=${String(value)}`)}`).join("");
  const strict = attempt.strict ? " --evocode-strict" : "";
  const times = attempt.attempt > 1 ? ` --evocode-attempts=${attempt.attempt}` : "";
  const node = quoted(round.node_id);
  const [file = "", ...names] = round.node_id.split("::");
  return [
    ["Run the round again", "The rounds before it are run first.", `pytest ${node} --evocode-agent=${agent}${words}${times}${strict}`],
    ["Run its suite on the reference solution", "Shows whether the suite itself is right.", `pytest ${quoted(`${file}::oracle::${names.at(-1)}`)} --evocode-agent=oracle`],
    ["Look at what the agent left", "Needs a session with --evocode-snapshots.", `evocode shell ${node}`],
    ["Show the task's rounds and requirements", "", `evocode show ${quoted(file.replace(/\/task\.toml$/, ""))}`],
  ];
}

/** @param {AttemptData} attempt @param {RoundData} round */
function commandsView(attempt, round) {
  const commands = roundCommands(attempt, round);
  if (!commands.length) return empty("There is no command that repeats this round.", "Results of other programs are run again by these programs.");
  return h("div.commands",
    h("p", "Start them in the directory that the run was started in."),
    commands.map(([what, help, command]) => h("section", h("h3", what), help && h("p", help), commandLine(command))));
}
