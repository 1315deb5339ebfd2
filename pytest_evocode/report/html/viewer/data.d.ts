/** What Python writes and the viewer reads. The modules in `pytest_evocode/report/html/` make these values.
 *
 * Every file below `data/` is a script with one call, `evocode.receive(NAME, BASE64)`, where BASE64 is a gzipped JSON
 * value and NAME the file's name without `data/` and `.js`:
 *
 *   index                        Index, read at the start
 *   comparisons                  Comparisons
 *   tasks/ID                     TaskData, with the `id` of a TaskSummary
 *   attempts/ID                  AttemptData, with the `id` of an AttemptSummary
 *   trajectories/ID-INDEX-PART   Step[], a part of the trajectory of round INDEX; parts count from 1
 *
 * Texts are what agents, programs and tasks wrote: hostile. Times are seconds, scores 0 to 100 unless it says otherwise,
 * times of day ISO 8601. null is unknown or not measured, never 0. IDs are of [0-9a-z-] and stay the same when a
 * report is written again. Rounds count from 1.
 */

type Mode = "chain" | "fail-stop" | "single-round";
type Dimension = "task" | "activity" | "interaction" | "change" | "category" | "round";
type FailureKind = "new miss" | "regression" | "carried" | "stale";

/** One character for a round of an attempt:
 *   p passed                r failed, with a regression     n failed, with a new miss and no regression
 *   c failed, carried only  s failed, stale only            t timeout of agent or suite
 *   b no case reported      a error of the agent            i infrastructure error
 *   o failed otherwise      - not reached                   . not selected                  ? under way
 *   u undecided: several rewards, and nothing says which one decides
 */
type Cell = "p" | "r" | "n" | "c" | "s" | "t" | "b" | "a" | "i" | "o" | "u" | "-" | "." | "?";

interface Interval { low: number; high: number; }

/** Scores of a row, or of a part of it; the keys are the fields of `pytest_evocode.metrics.scores.Scores`. */
interface ScoreValues {
  dataset_score: number | null;
  case_score: number | null;
  avg_rounds: number | null;
  perfect_tasks: number | null;
  mt_at_k: number | null;
  sr: number | null;
  gap: number | null;
  final_round_completion: number | null;
  mean_reward: number | null;
  reliability: number | null;
  tasks: number;
  rounds: number;
  /** k: the fewest and the most attempts at a round. */
  attempts_min: number;
  attempts_max: number;
  /** How many verdicts trust the agent's system. */
  trusting: number;
}

/** What a row cost, each the mean over tasks per attempt at a task. */
interface Spending {
  cost_usd: number | null;
  tokens: number | null;
  output_tokens: number | null;
  agent_seconds: number | null;
}

/** One agent in one mode under one condition: a row of `evocode results`. */
interface Row {
  id: string;
  /** Its name with what tells it from others. */
  name: string;
  agent: string;
  mode: Mode;
  from_round: string | null;
  /** What drives the model or tool, with its version; "none" where there is neither, as of oracle and nop; "" where
   * records do not say. */
  harness: string;
  environment: string;
  strict: boolean | null;
  /** Rows of one number are one ranking and can be compared. */
  ranking: number;
  scores: ScoreValues;
  /** 95 % intervals by field of `scores`; a field is missing where there is none. */
  intervals: { [field: string]: Interval };
  without_faults: Partial<ScoreValues> | null;
  spending: Spending;
  /** The scores of the row's rounds in a group, by dimension and group, with the fields that a group has. */
  groups: { [dimension in Dimension]?: { [group: string]: Partial<ScoreValues> } };
  /** By round: how many of `of` tasks pass it (a fraction over attempts), and how many attempts fail there first. */
  survival: { round: number; passed: number; of: number; first_failures: number }[];
  /** By failure kind of rounds and of cases, as `evocode failures` prints. */
  failures: { rounds: { [kind: string]: number }; cases: { [kind: string]: number }; not_reached: number };
  /** Rounds with an infrastructure fault or an error of the agent. */
  faults: number;
  partial: number;
  /** Attempts that were selected and left nothing. */
  missing: { task: string; attempt: number }[];
  /** null where nothing was scored. */
  process: ProcessSummary | null;
  /** What is to be known about this row, such as that its tasks changed. */
  notes: string[];
}

interface ProcessSummary {
  /** RigorScore, 0 to 100. */
  score: number | null;
  interval: Interval | null;
  /** By pillar's short name; values 0 to 1; `coverage` is the share of rounds in which it was measured, 0 to 1. */
  pillars: { [pillar: string]: { value: number | null; coverage: number; interval: Interval | null } };
  rounds: number;
}

interface TaskSummary {
  id: string;
  name: string;
  rounds: string[];
  change_types: string[][];
  activity: string;
  interaction: string;
  category: string;
  difficulty: string;
}

interface AttemptSummary {
  id: string;
  /** Of the Row in which it counts; "" where it counts in none. */
  row: string;
  task: string;
  agent: string;
  attempt: number;
  run: string;
  mode: Mode;
  finished: boolean;
  /** A Cell for each declared round. */
  cells: string;
  /** Passed cases of each declared round, and of how many; [0, 0] without a verdict. */
  cases: [number, number][];
  /** Indices of rounds whose verdict trusts the agent's system. */
  trusts: number[];
  cost_usd: number | null;
  tokens: number | null;
  seconds: number | null;
  /** Why it does not count, or "". */
  left_out: string;
}

interface RunSummary {
  id: string;
  name: string;
  started: string;
  finished: string | null;
  exit_status: number | null;
  arguments: string[];
  environment: string;
  mode: Mode;
  shard: [number, number] | null;
  strict: boolean | null;
  verify: string | null;
  attempts: string[];
  /** Sums over rounds, by phase: setup, agent, snapshot, bookkeeping, waiting, fork, suite, reading. */
  phases: { [phase: string]: number };
  /** What it waited for; null where no record tells when rounds began. */
  timeline: RunTimeline | null;
  /** What made each agent, as `made_by` has it. */
  agents: { [name: string]: { [key: string]: unknown } };
  /** What it ran with: pytest-evocode, Python, pytest, platform, the engine's parts, and harnesses. */
  versions: { [name: string]: string };
  /** What to be careful about, as far as records say, a line for each kind of thing. */
  warnings?: string[];
  /** Commands that continue or repeat it: what for, and the command. */
  commands: [string, string][];
  faults: { attempt: string; round: number; cause: string }[];
}

interface RunTimeline {
  /** More than none. */
  seconds: number;
  /** Its critical path by stage: name, what it is, seconds; the longest first. */
  stages: [string, string, number][];
  /** Slots, then the first attempts, with the beginning and end of each turn and suite in seconds since the run's first moment. */
  bars: { name: string; attempt: string | null; turns: [number, number][]; suites: [number, number][] }[];
}

/** Points of cost, tokens or time against a score, with those marked that no other point beats in both. */
interface Pareto {
  score: "dataset_score" | "case_score";
  against: "cost_usd" | "tokens" | "agent_seconds";
  /** `standing` is how sure it is that a row is on the front, in words; empty below five tasks. */
  points: { row: string; x: number; y: number; front: boolean; standing: string }[];
}

interface Index {
  format: 1;
  title: string;
  written: string;
  /** Of pytest-evocode. */
  version: string;
  /** Whether a session is still writing, as far as is known. */
  under_way: boolean;
  directories: string[];
  rows: Row[];
  tasks: TaskSummary[];
  attempts: AttemptSummary[];
  runs: RunSummary[];
  pareto: Pareto[];
  /** What is to be known before rows are compared, such as that k differs. */
  notes: string[];
  /** What was left out and why: damaged records, missing attempts, tasks that are gone. */
  problems: string[];
  /** Fields of scores that have a column, always or where somebody asks for more. */
  columns: { main: string[]; more: string[] };
  /** Titles of the columns by field, and in one sentence what each is. */
  titles: { [field: string]: { title: string; help: string; unit: string } };
  /** Correlation of process and outcome over rows, null where it cannot be computed. */
  process_outcome: { r: number | null; interval: Interval | null; n: number; note: string } | null;
}

/** What somebody wrote in Markdown: texts, and elements whose `tag` is one of few; `href` is of an `a` and begins with
 * http:// or https://, and "" of all others. */
type Written = string | WrittenElement;
interface WrittenElement { tag: string; href: string; children: Written[]; }

interface TaskData {
  id: string;
  name: string;
  /** null where the task is gone; then the page says so. */
  rounds: { name: string; instruction: string; written: Written[]; change_types: string[]; suite: string[] }[] | null;
  note: string;
  /** From when to when a requirement holds: `introduced` and `retired` are indices of rounds, null for never. */
  requirements: { id: string; introduced: number; retired: number | null; kinds: string[]; cases: number[] }[];
  /** `requirement` is an index into `requirements`, or null. */
  cases: { id: string; origin: string; requirement: number | null; kind: string; intent: string }[];
  /** For each attempt and each round with a verdict, a character for each case of `cases`: `p`, a failing one's kind as
   * `n`, `r`, `c` or `s`, `k` skipped, `.` not run. */
  attempts: { id: string; rounds: { [index: string]: string } }[];
}

interface CaseData {
  id: string;
  status: "passed" | "failed" | "skipped" | "error";
  origin: string;
  requirement: string;
  kind: string;
  intent: string;
  scenario: string;
  input: string;
  expected: string;
  actual: string;
  reason: string;
  failure: FailureKind | null;
  /** The test of a failing case, with its file and line before it; "" where it is not known. */
  test: string;
  /** Who introduced the failure, where recordings allow: the round in which the case first failed after it had passed
   * (or was first required), and the agent's step in it whose edit is the last before that verdict that touched a file
   * which the failure names; null where nobody can tell. `why` is one sentence. */
  introduced: { round: number; step: number | null; why: string } | null;
}

interface FileChange {
  path: string;
  kind: "added" | "changed" | "removed" | "renamed";
  /** The path before, of a renamed file. */
  from: string;
  /** Unified diff without its header of names; "" where the content was not recorded. */
  diff: string;
  added: number;
  removed: number;
  /** Why there is no diff, or "". */
  note: string;
  /** Steps of the round whose edits it comes from. */
  steps: number[];
}

interface Evidence { what: string; step: number | null; quote: string; }
interface Measure { value: number | null; certainty: "executed" | "parsed" | "judged" | null; reason: string; evidence: Evidence[]; }

interface RoundData {
  index: number;
  name: string;
  cell: Cell;
  outcome: "passed" | "failed" | "undecided" | "error" | "not reached" | "under way";
  cause: string;
  fault: "agent" | "infrastructure" | null;
  timed_out: "agent" | "verifier" | null;
  stopped: string;
  reward: number | null;
  rewards: { [key: string]: number };
  counts: [number, number];
  flags: string[];
  rests_on: "separate" | "clean" | "in-place" | null;
  void: boolean;
  trusts: string[];
  changed_counts: { [kind: string]: number };
  repeats: { times: number; passed: number; flaky: boolean; differing: string[] } | null;
  /** Those that did not pass, in full; passed ones have texts that are empty but id, origin, requirement and kind. */
  cases: CaseData[];
  /** What the suite printed; `omitted` characters were left out in the middle. */
  output: string;
  omitted: number;
  /** Changes of the workspace in this round, null where nothing was recorded. */
  changes: FileChange[] | null;
  /** Of many the first ones, and then how many more there are. */
  artifacts: string[];
  usage: { prompt_tokens: number | null; cached_tokens: number | null; completion_tokens: number | null; cost_usd: number | null; requests: number | null } | null;
  tool_calls: number | null;
  phases: { [phase: string]: number };
  agent_seconds: number | null;
  verifier_seconds: number | null;
  /** The pytest node id, for commands. */
  node_id: string;
  /** How many steps and parts the trajectory has; null without one. `first` has the number of steps before each part. */
  trajectory: { steps: number; parts: number; first: number[]; notes: string } | null;
  process: { score: number | null; edited: boolean; pillars: { [pillar: string]: { value: number | null; measures: { [name: string]: Measure } } }; extended: { [name: string]: Measure } } | null;
}

interface AttemptData {
  id: string;
  task: string;
  agent: string;
  attempt: number;
  run: string;
  started: string;
  finished: string;
  environment: string;
  made_by: { [key: string]: unknown };
  strict: boolean | null;
  regraded: string | null;
  rewards: { [key: string]: number };
  /** The attempt's directory. */
  path: string;
  rounds: RoundData[];
  /** What could not be read, each with the file and what to do. */
  problems: string[];
}

interface Call {
  id: string;
  name: string;
  /** Arguments as the model gave them; a shell command is the text of `command`. */
  arguments: { [key: string]: unknown };
  /** What it is for, where that is known: "edit", "test", "read", "search", "build", "git", "other". */
  purpose: string;
  output: string;
  exit_code: number | null;
  seconds: number | null;
  changes: FileChange[];
}

interface Step {
  /** The step_id of ATIF, unique in the round. */
  id: number;
  source: "system" | "user" | "agent";
  time: string | null;
  model: string;
  text: string;
  reasoning: string;
  calls: Call[];
  prompt_tokens: number | null;
  completion_tokens: number | null;
  cost_usd: number | null;
  /** Whether it repeats an earlier round's step as context. */
  copied: boolean;
  /** What the recording says about it: elisions, retries, refusals, a budget that ran out. */
  remarks: string[];
}

interface Difference {
  field: string;
  first: number;
  second: number;
  difference: number;
  interval: Interval | null;
  p_value: number | null;
  won: number;
  lost: number;
  tied: number;
  tasks: number;
}

interface Comparisons {
  /** For pairs of rows of one mode, conditions and contents of tasks, over the rounds that were selected for both:
   * `second` minus `first`. Of many rows only pairs with the best ones. */
  pairs: {
    first: string;
    second: string;
    differences: Difference[];
    /** Rounds that one side passes in more than half of its attempts and the other does not; shares 0 to 1. */
    flips: { task: string; round: number; first: number; second: number }[];
    flips_p_value: number;
    flips_by_task_p_value: number | null;
    only_first: string[];
    only_second: string[];
    same_attempts: boolean;
  }[];
  /** Why a pair is not there. */
  note: string;
}
