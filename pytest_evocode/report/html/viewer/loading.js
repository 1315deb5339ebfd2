/** The report's data: scripts below `data/` that hand over gzipped JSON, loaded when somebody asks for them. */

/** How many files of a kind stay in memory; those least recently used go. @type {{ [kind: string]: number }} */
const KEPT = { attempts: 12, tasks: 12, trajectories: 8 };
const FILE_NAME = /^[0-9a-z-]+(\/[0-9a-z-]+)*$/;

/** What came and was not yet asked for, or cannot come again, by name. @type {Map<string, string>} */
const received = new Map();
/** Names that the page itself has, in its single-file form. @type {Set<string>} */
const inPage = new Set();
/** Values by name, the least recently used first. @type {Map<string, Promise<unknown>>} */
const loaded = new Map();

{
  const here = /** @type {{ evocode?: { kept?: [string, string][], receive: (name: string, data: string) => void } }} */ (globalThis);
  for (const [name, data] of here.evocode?.kept ?? []) {
    received.set(name, data);
    inPage.add(name);
  }
  here.evocode = Object.freeze({
    receive(/** @type {string} */ name, /** @type {string} */ data) {
      if (typeof name === "string" && typeof data === "string" && FILE_NAME.test(name)) received.set(name, data);
    },
  });
}

/** Load a file of `data/`, once; rejects with an Error whose message says which file is missing or damaged.
 * @type {Load} */
const load = /** @type {Load} */ ((/** @type {string} */ name) => {
  let value = loaded.get(name);
  if (value) loaded.delete(name);
  else {
    value = FILE_NAME.test(name) && isNamed(name) ? fetched(name) : Promise.reject(new Error(`There is no “${visible(name)}” in this report. It may have been written anew.`));
    // A file that is missing now may be there later: a report is written again while a session runs.
    value.catch(() => loaded.delete(name));
  }
  loaded.set(name, value);
  forget(name);
  return value;
});

/** Whether the index names it; an address that somebody made up is no reason to look for a file. @param {string} name */
function isNamed(name) {
  const [kind, id = ""] = name.split("/");
  return kind !== "attempts" || report.attempt(id) !== undefined;
}

/** @param {string} name of what was just used */
function forget(name) {
  const [kind = ""] = name.split("/");
  const same = [...loaded.keys()].filter((each) => each.startsWith(`${kind}/`));
  for (const each of same.slice(0, Math.max(0, same.length - (KEPT[kind] ?? Infinity)))) loaded.delete(each);
}

/** @param {string} name @returns {Promise<unknown>} */
async function fetched(name) {
  const file = `data/${name}.js`;
  if (!received.has(name)) await runScript(file);
  const data = received.get(name);
  if (!inPage.has(name)) received.delete(name);
  if (data === undefined) throw damaged(file);
  try {
    return await unpacked(data);
  } catch {
    throw damaged(file);
  }
}

/** @param {string} file */
const damaged = (file) => new Error(`The file ${file} of this report is damaged. Delete it and write the report again.`);

/** @param {string} file @returns {Promise<void>} */
const runScript = (file) => new Promise((resolve, reject) => {
  const script = document.createElement("script");
  script.onload = () => (script.remove(), resolve());
  script.onerror = () => {
    script.remove();
    reject(new Error(
      inPage.size
        ? `This page has no ${file.slice(5, -3)} in itself. Write the report again.`
        : `The file ${file} of this report is missing. Copy the whole directory, or write the report again.`,
    ));
  };
  script.src = file;
  document.head.append(script);
});

/** @param {string} data */
function unpacked(data) {
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

/** @type {{ rows: Map<string, Row>, tasks: Map<string, TaskSummary>, attempts: Map<string, AttemptSummary>, at: Map<string, AttemptSummary[]> }} */
const found = { rows: new Map(), tasks: new Map(), attempts: new Map(), at: new Map() };

/** The index, and what is found by id; set before any page is shown. */
const report = Object.assign(/** @type {Index} */ ({}), {
  /** @param {string | undefined} id */
  row: (id) => found.rows.get(id ?? ""),
  /** @param {string | undefined} name */
  task: (name) => found.tasks.get(name ?? ""),
  /** @param {string | undefined} id */
  attempt: (id) => found.attempts.get(id ?? ""),
  /** @param {string} task @returns {AttemptSummary[]} */
  attemptsAt: (task) => found.at.get(task) ?? [],
});

/** @param {Index} index */
function setIndex(index) {
  Object.assign(report, index);
  found.rows = new Map(index.rows.map((row) => [row.id, row]));
  found.tasks = new Map(index.tasks.map((task) => [task.name, task]));
  found.attempts = new Map(index.attempts.map((attempt) => [attempt.id, attempt]));
  found.at = Map.groupBy(index.attempts, (attempt) => attempt.task);
}
