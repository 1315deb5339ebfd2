// The parts of a trajectory: loaded as they come near, a few of them kept, all of them gone through for a search.

const KEPT_PARTS = 4;
/** Milliseconds that one slice of work may take before the browser is let in. */
const SLICE = 8;

/** @typedef {ReturnType<typeof trajectoryParts>} TrajectoryParts */

/** Give the browser a turn, so that it can draw and take keys. */
const breathe = () => new Promise((resolve) => {
  // Timers wait at least 4 ms once they are nested; messages do not.
  const channel = new MessageChannel();
  channel.port1.onmessage = () => {
    channel.port1.close();
    resolve(undefined);
  };
  channel.port2.postMessage(0);
});

/**
 * @param {string} id of the attempt
 * @param {RoundData} round with a trajectory
 */
function trajectoryParts(id, round) {
  const { steps: count, parts, first } = round.trajectory ?? { steps: 0, parts: 0, first: [] };
  /** @type {Map<number, Step[]>} */
  const kept = new Map();
  /** @type {Map<number, string>} */
  const failed = new Map();

  /** Load a part without keeping it. @param {number} part from 0 @returns {Promise<Step[]>} */
  function read(part) {
    const known = kept.get(part);
    return known ? Promise.resolve(known) : load(`trajectories/${id}-${round.index}-${part + 1}`);
  }
  /** Load a part and keep it in place of the one that was not used for the longest time. @param {number} part */
  async function keep(part) {
    try {
      const steps = await read(part);
      kept.delete(part);
      kept.set(part, steps);
      failed.delete(part);
      for (const old of kept.keys()) {
        if (kept.size <= KEPT_PARTS) break;
        kept.delete(old);
      }
    } catch (error) {
      failed.set(part, messageOf(error));
    }
  }
  /** @param {number} index of a step, from 0 */
  const partOf = (index) => Math.max(0, first.findLastIndex((start) => start <= index));
  /** Go through all parts, beginning with `from`, forwards or backwards.
   * @param {number} from @param {1 | -1} direction @param {AbortSignal} stop
   * @returns {AsyncGenerator<{ steps: Step[], start: number, part: number }>} */
  async function* through(from, direction, stop) {
    for (let part = from; part >= 0 && part < parts && !stop.aborted; part += direction) {
      try {
        yield { steps: await read(part), start: first[part] ?? 0, part };
      } catch {
        // The list says which part is missing; the others can be searched all the same.
        continue;
      }
    }
  }
  return {
    count,
    parts,
    partOf,
    read,
    keep,
    through,
    /** @param {number} part */
    start: (part) => first[part] ?? 0,
    /** @param {number} part */
    problem: (part) => failed.get(part),
    /** @param {number} part */
    has: (part) => kept.has(part) || failed.has(part),
    /** The step at an index, if its part is there. @param {number} index */
    step(index) {
      const part = partOf(index);
      return kept.get(part)?.[index - (first[part] ?? 0)];
    },
    /** Find the index of a step by its id; null if there is none. Where a part is missing the step may be in it.
     * @param {number} step @param {AbortSignal} stop @returns {Promise<{ index: number, missing: boolean } | null>} */
    async find(step, stop) {
      /** @type {number | null} */
      let gap = null;
      // Ids mostly count from 1, so the part that would hold it then is asked first.
      const guess = partOf(within(step - 1, 0, Math.max(count - 1, 0)));
      for (const part of [guess, ...first.keys()]) {
        if (stop.aborted) return null;
        const steps = await read(part).catch(() => null);
        if (steps === null) gap ??= part;
        const at = steps?.findIndex((each) => each.id === step) ?? -1;
        if (at >= 0) return { index: (first[part] ?? 0) + at, missing: false };
      }
      return gap === null ? null : { index: first[gap] ?? 0, missing: true };
    },
  };
}
