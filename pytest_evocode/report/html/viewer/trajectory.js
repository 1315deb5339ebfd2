// The page of one round's trajectory: its steps as a list that draws what is seen, search, and jumps.

/** Steps that a jump goes to: title, help, the key forwards (with Shift backwards), and what they are. */
const JUMPS = /** @type {[string, string, (step: Step) => boolean][]} */ ([
  ["edit", "e", isEdit],
  ["test run", "t", isTest],
  ["failure", "f", isFailure],
]);

definePage("trajectory", "", async (main, place, left) => {
  const { attempt, round } = await loadedRound(place);
  if (left.aborted) return;
  heading(main, round ? `Trajectory of round ${round.index}: ${round.name}` : "Trajectory", roundTrail(attempt, round));
  if (!round?.trajectory?.steps) {
    main.append(empty("No trajectory of this round can be shown.", attempt.problems.length
      ? `Not all could be read: ${attempt.problems[0]}`
      : "Oracle and nop leave none."));
    return;
  }
  main.append(roundLinks(attempt, round, "trajectory"));
  return showTrajectory(main, place, left, attempt, round);
});

/** @param {RoundData} round */
function evidenceByStep(round) {
  /** @type {Map<number, StepEvidence[]>} */
  const found = new Map();
  for (const { pillar, measure, value } of measuresOf(round)) {
    for (const evidence of value.evidence) {
      if (evidence.step === null) continue;
      found.set(evidence.step, [...(found.get(evidence.step) ?? []), { pillar, measure, evidence }]);
    }
  }
  return found;
}

/** @param {HTMLElement} main @param {Place} place @param {AbortSignal} left @param {AttemptData} attempt
 * @param {RoundData} round */
function showTrajectory(main, place, left, attempt, round) {
  const parts = trajectoryParts(attempt.id, round);
  const path = [attempt.id, round.index];
  /** @type {StepContext} */
  const context = {
    hidden: hiddenKinds(place),
    selected: null,
    hit: null,
    evidence: evidenceByStep(round),
    href: (step) => link("trajectory", path, { ...current.settings, step }),
    pillar: (pillar, measure) => link("round", path, { tab: "process", measure: `${pillar}.${measure}` }),
    select: (step) => void goTo(step),
  };
  let current = place;
  /** Index of the selected step, or null. @type {number | null} */
  let at = null;
  const said = h("span.said", { role: "status" });
  const search = searchPanel(parts, left, {
    query: place.settings.q ?? "",
    regular: place.settings.regex === "1",
    changed: (query, regular) => setSettings({ q: query || null, regex: regular ? "1" : null }, { replace: true }),
    show: (hit) => {
      context.hit = hit;
      select(hit.index, hit.step);
    },
    drawn: () => queueMark(),
  });

  // Parts are loaded one at a time, the last one wanted first: while somebody scrolls fast, most are never needed.
  /** @type {number[]} */
  let wanted = [];
  let loading = false;
  /** @param {number} part */
  function want(part) {
    if (parts.has(part)) return;
    wanted = [...wanted.filter((each) => each !== part), part].slice(-2);
    if (!loading) void loadWanted();
  }
  async function loadWanted() {
    loading = true;
    while (wanted.length && !left.aborted) {
      await new Promise((resolve) => setTimeout(resolve, 60));
      const part = /** @type {number} */ (wanted.pop());
      await parts.keep(part);
      if (!left.aborted) list.refresh();
    }
    loading = false;
  }

  let marking = 0;
  function queueMark() {
    if (!marking) marking = requestAnimationFrame(() => ((marking = 0), highlight(list.element, search.pattern())));
  }

  const list = virtualList({
    count: parts.count,
    estimate: 180,
    label: `Steps of round ${round.index}`,
    left,
    render(index) {
      const step = parts.step(index);
      if (step) {
        queueMark();
        return stepView(step, context);
      }
      want(parts.partOf(index));
      const problem = parts.problem(parts.partOf(index));
      return h("div.step.pending", problem ? note("error", problem) : `Step ${index + 1} is being loaded …`);
    },
  });

  /** @param {number} index @param {number} step its id */
  function select(index, step) {
    at = index;
    context.selected = step;
    void parts.keep(parts.partOf(index)).then(() => {
      if (left.aborted || at !== index) return;
      list.refresh();
      list.scrollTo(index);
    });
    setSettings({ step: String(step) }, { replace: true });
  }
  /** @param {number} step its id */
  async function goTo(step) {
    context.hit = null;
    const found = await parts.find(step, left);
    if (left.aborted) return;
    if (found) select(found.index, step);
    said.textContent = found ? (found.missing ? `Step ${step} was not found: it may be in the part that is missing here.` : "") : `Step ${step} was not found in this round.`;
  }
  /** @type {AbortController | null} */
  let jumping = null;
  /** @param {(step: Step) => boolean} test @param {1 | -1} direction @param {string} what */
  async function jump(test, direction, what) {
    jumping?.abort();
    jumping = new AbortController();
    const { signal } = jumping;
    const from = at ?? (direction > 0 ? list.first() - 1 : list.first());
    const part = parts.partOf(within(from + direction, 0, parts.count - 1));
    said.textContent = "";
    for await (const { steps, start } of parts.through(part, direction, signal)) {
      const index = nextIndex(steps, start, from, direction, test);
      if (signal.aborted || left.aborted) return;
      if (index !== null) {
        context.hit = null;
        return select(index, /** @type {Step} */ (steps[index - start]).id);
      }
      await breathe();
    }
    if (!signal.aborted) said.textContent = `There is no ${direction > 0 ? "later" : "earlier"} ${what}.`;
  }

  main.append(
    trajectoryFacts(round),
    h("div.trajectory-bar",
      h("div.tools", showToggles(context.hidden), jumpButtons((...how) => void jump(...how)), search.form, said),
      search.list),
    list.element);
  if (place.settings.step) void goTo(Number(place.settings.step));
  search.start();
  /** @param {string} help @param {() => unknown} run */
  const act = (help, run) => ({ help, run: () => void run() });
  return {
    keys: {
      ...Object.fromEntries(JUMPS.flatMap(([what, key, test]) => [
        [key, act(`Next ${what}`, () => jump(test, 1, what))],
        [key.toUpperCase(), act(`Previous ${what}`, () => jump(test, -1, what))],
      ])),
      j: act("Next step", () => jump(() => true, 1, "step")),
      k: act("Previous step", () => jump(() => true, -1, "step")),
      n: act("Next hit of the search", () => search.go(1)),
      N: act("Previous hit of the search", () => search.go(-1)),
      ...roundKeys(attempt, round, "trajectory"),
    },
    update(/** @type {Place} */ now) {
      const step = Number(now.settings.step ?? 0);
      const hidden = hiddenKinds(now);
      const changed = [...hidden].join() !== [...context.hidden].join();
      current = now;
      context.hidden = hidden;
      if (step && step !== context.selected) void goTo(step);
      else if (changed) list.refresh();
    },
  };
}

/** @param {Step[]} steps @param {number} start @param {number} from @param {1 | -1} direction
 * @param {(step: Step) => boolean} test @returns {number | null} */
function nextIndex(steps, start, from, direction, test) {
  const at = direction > 0
    ? steps.findIndex((step, index) => start + index > from && test(step))
    : steps.findLastIndex((step, index) => start + index < from && test(step));
  return at < 0 ? null : start + at;
}

/** @param {Place} place @returns {Set<string>} */
function hiddenKinds(place) {
  return new Set((place.settings.hide ?? "copied").split(","));
}

/** @param {Set<string>} hidden */
function showToggles(hidden) {
  const chosen = new Set(hidden);
  /** @param {string} kind */
  const toggle = (kind) => h("label",
    h("input", {
      type: "checkbox", checked: !chosen.has(kind),
      onchange() {
        if (!chosen.delete(kind)) chosen.add(kind);
        const names = SHOWN_KINDS.filter((each) => chosen.has(each)).join();
        setSettings({ hide: names === "copied" ? null : names || "none" }, { replace: true });
      },
    }), kind === "copied" ? " Copied context" : ` ${capital(kind)}`);
  return h("fieldset.toggles", h("legend", "Show"), SHOWN_KINDS.map(toggle));
}

/** @param {(test: (step: Step) => boolean, direction: 1 | -1, what: string) => void} jump */
const jumpButtons = (jump) => h("div.jumps", { role: "group", label: "Jump between steps" }, JUMPS.map(([what, key, test]) => h("span",
  iconButton("‹", `Previous ${what}`, key.toUpperCase(), () => jump(test, -1, what)), ` ${what} `,
  iconButton("›", `Next ${what}`, key, () => jump(test, 1, what)))));

/** @param {RoundData} round */
function trajectoryFacts(round) {
  const { usage, trajectory } = round;
  return h(
    "p.facts",
    `${integer(trajectory?.steps)} steps, ${integer(round.tool_calls)} tool calls`,
    usage && `, ${integer(usage.prompt_tokens)} tokens in and ${integer(usage.completion_tokens)} out, ${money(usage.cost_usd)}`,
    round.agent_seconds !== null && `, ${duration(round.agent_seconds)}`,
    ".",
    round.stopped && [" The turn was stopped: ", named(round.stopped)],
    trajectory?.notes && [" ", named(trajectory.notes, 1000)],
  );
}
