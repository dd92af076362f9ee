import { errorMessage, printable } from "@periodic-eval/contracts/options";
import { PeriodicEvalError } from "@periodic-eval/core";
import type { FitLimits } from "@periodic-eval/tokenizers";
import { failedAttemptOf, type JsonService } from "../http/json-service.ts";
import { untracked } from "../http/track-requests.ts";

/** A model on a server: the base model, or an adapter that is loaded on it. */
export interface Target {
  /** Names the model in errors. */
  readonly where: string;
  /** Its name on the server. */
  readonly name: string;
  readonly isAdapter: boolean;
  readonly pool: Pool;
  /** Limits of scored sequences. */
  readonly limits: FitLimits;
  /** Longest sequence of prompt and completion, or Infinity. */
  readonly contextLimit: number;
  /** Log-probabilities of the next token that the server returns per request; 0 if it returns none. */
  readonly topCount: number;
  /** Whether the log-probabilities of generated tokens are those of the model, before temperature and top-p. */
  readonly hasTokenNats: boolean;
  /** Runs work on a replica that has the model. */
  run<T>(signal: AbortSignal, work: (replica: Replica) => Promise<T>): Promise<T>;
}

/** One server process. */
export interface Replica {
  readonly url: string;
  /** Sends each request once: the pool retries. */
  readonly service: JsonService;
  /** The adapters that it has loaded or is loading, by their names on the server. */
  readonly adapters: Map<string, Promise<void>>;
  /** Kinds of modules (`q_proj`) on which it was seen to apply adapters. */
  readonly provenKinds: Set<string>;
}

export interface Job<T> {
  /** The name of the model that the requests of `work` name. */
  readonly model: string;
  readonly signal: AbortSignal;
  /** Runs on this replica or not at all. */
  readonly only?: Replica;
  /** Sends requests to a replica. It is repeated, perhaps on another replica, after an error that a retry may mend. */
  work(replica: Replica): Promise<T>;
}

export interface PoolOptions {
  readonly replicas: readonly Replica[];
  readonly concurrency: number;
  readonly maxRetries: number;
  /** Checks a replica that failed before it gets jobs again. */
  readonly revive: (replica: Replica) => Promise<void>;
}

/** Distributes jobs to replicas. */
export interface Pool {
  /**
   * Runs a job on the replica with the fewest jobs. Jobs wait, in order, while all replicas are full. A replica never has jobs of two
   * models at a time: it drains first. After a failure a replica rests, longer each time, and is checked before it gets
   * jobs again.
   *
   * @throws The job's error, after `maxRetries` more attempts if a retry may mend it; the signal's reason.
   */
  run<T>(job: Job<T>): Promise<T>;
  /**
   * Runs `work` on every replica that takes jobs; a replica that fails gets it once more after a rest, because a server may close an
   * idle connection. Throws if it fails on all, or with an error that no retry mends.
   */
  runOnEach(job: Omit<Job<unknown>, "only">): Promise<void>;
  /** Jobs that can be in flight at a time. */
  readonly capacity: number;
  /** Jobs that would start at once, at least 1. */
  readonly free: number;
}

interface Slot {
  readonly replica: Replica;
  inFlight: number;
  /** The model of the jobs in flight. */
  model: string | null;
  /** Failures since the last job that ended well; Infinity if it must not be used again. */
  failures: number;
  /** The time at which it may be tried again; null if it takes jobs. */
  restsUntil: number | null;
  needsRevival: boolean;
  lastError: unknown;
  isTried: boolean;
}

interface Waiting {
  readonly job: Job<unknown>;
  readonly start: (slot: Slot) => void;
  readonly fail: (error: unknown) => void;
}

const longestRestSeconds = 30;

interface State extends PoolOptions {
  readonly slots: readonly Slot[];
  readonly queue: Waiting[];
  /** Why no replica can be used again; null while one can. */
  lost: { readonly error: unknown } | null;
  timer: ReturnType<typeof setTimeout> | undefined;
}

export function openPool(options: PoolOptions): Pool {
  const { replicas, concurrency } = options;
  const slots = replicas.map((replica) => ({ ...freshSlot, replica }));
  const state: State = { ...options, slots, queue: [], lost: null, timer: undefined };
  return {
    capacity: replicas.length * concurrency,
    get free() {
      const taken = slots.reduce((sum, { inFlight }) => sum + inFlight, state.queue.length);
      return Math.max(1, replicas.length * concurrency - taken);
    },
    run: (job) => run(state, job),
    async runOnEach(job) {
      const usable = slots.filter(({ failures }) => failures < Infinity);
      if (state.lost !== null) throw state.lost.error;
      const outcomes = await Promise.allSettled(
        usable.map(({ replica: only }) => run(state, { ...job, only })),
      );
      job.signal.throwIfAborted();
      const errors: unknown[] = outcomes.flatMap((outcome) => ("reason" in outcome ? [outcome.reason] : []));
      const final = errors.find(
        (error) => failedAttemptOf(error)?.mayRetry !== true && !outages.has(error as PeriodicEvalError),
      );
      if (final !== undefined) throw final;
      if (errors.length === usable.length) throw errors[0];
    },
  };
}

const freshSlot: Omit<Slot, "replica"> = {
  inFlight: 0,
  model: null,
  failures: 0,
  restsUntil: null,
  needsRevival: false,
  lastError: null,
  isTried: false,
};

async function run<T>(state: State, job: Job<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    const slot = await acquire(state, job, attempt);
    try {
      const answer = await job.work(slot.replica);
      // A failure of another job in flight may have been noticed before.
      if (slot.restsUntil === null) slot.failures = 0;
      return answer;
    } catch (error) {
      job.signal.throwIfAborted();
      if (failedAttemptOf(error)?.mayRetry !== true) throw error;
      rest(state, slot, error);
      if (attempt >= Math.min(state.maxRetries, job.only === undefined ? Infinity : 1)) throw error;
    } finally {
      slot.inFlight--;
      pump(state);
    }
  }
}

/** Waits for a replica. A job for one that still rests is not started. */
async function acquire(state: State, job: Job<unknown>, attempt: number): Promise<Slot> {
  const { queue, slots, lost } = state;
  const { signal, only } = job;
  signal.throwIfAborted();
  if (lost !== null) throw lost.error;
  const wanted = slots.find(({ replica }) => replica === only);
  const isResting = wanted !== undefined && (wanted.restsUntil ?? 0) > performance.now();
  if (isResting && (attempt === 0 || wanted.failures === Infinity)) throw wanted.lastError;
  return new Promise((resolve, reject) => {
    const settle = () => signal.removeEventListener("abort", onAbort);
    const waiting: Waiting = {
      job,
      start: (slot) => (settle(), resolve(slot)),
      fail(error) {
        settle();
        queue.splice(queue.indexOf(waiting), 1);
        reject(error);
      },
    };
    const onAbort = () => {
      waiting.fail(signal.reason);
      pump(state);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    queue.push(waiting);
    pump(state);
  });
}

/** Starts jobs in order. The first one that no replica takes holds up the others, so that a replica drains for it. */
function pump(state: State): void {
  const { queue, slots, concurrency } = state;
  clearTimeout(state.timer);
  for (let next = queue[0]; next !== undefined; next = queue[0]) {
    const { job } = next;
    const free = slots.filter((slot) => takes(slot, job, concurrency));
    const [slot] = free.sort((a, b) => a.inFlight - b.inFlight);
    if (slot === undefined) return tryRested(state);
    queue.shift();
    slot.inFlight++;
    slot.model = job.model;
    next.start(slot);
  }
}

const takes = (slot: Slot, { model, only }: Job<unknown>, concurrency: number): boolean =>
  slot.restsUntil === null &&
  slot.inFlight < concurrency &&
  (slot.inFlight === 0 || slot.model === model) &&
  (only === undefined || only === slot.replica);

/** Tries replicas that have rested, once their last jobs have ended. */
function tryRested(state: State): void {
  const now = performance.now();
  const resting = state.slots.filter(
    ({ restsUntil, isTried, inFlight }) => restsUntil !== null && !isTried && inFlight === 0,
  );
  for (const slot of resting) if (slot.restsUntil! <= now) void tryAgain(state, slot);
  const next = Math.min(...resting.map(({ restsUntil }) => restsUntil!).filter((at) => at > now));
  if (next < Infinity) state.timer = setTimeout(() => pump(state), next - now);
}

async function tryAgain(state: State, slot: Slot): Promise<void> {
  slot.isTried = true;
  try {
    if (slot.needsRevival) await untracked(() => state.revive(slot.replica));
    slot.restsUntil = null;
    slot.needsRevival = false;
  } catch (error) {
    rest(state, slot, error);
  }
  slot.isTried = false;
  pump(state);
}

/**
 * Whether an error is a lost connection or a status other than that of a wrong token. A gateway may send any other status while the
 * server behind it restarts.
 */
const isOutage = (error: unknown): error is PeriodicEvalError =>
  failedAttemptOf(error) !== null ||
  (PeriodicEvalError.is(error) && error.detail?.kind === "http" && ![401, 403].includes(error.detail.status));

/** The errors after which a replica rests and is tried again. */
const outages = new WeakSet<PeriodicEvalError>();

/** Lets a replica rest after a failure. */
function rest(state: State, slot: Slot, error: unknown): void {
  const { slots, maxRetries } = state;
  const failed = failedAttemptOf(error);
  // All requests in flight fail when a server dies; that is one failure.
  if (slot.restsUntil !== null && !slot.isTried) return;
  slot.lastError = error;
  const wasDead = slot.failures > maxRetries;
  // Jobs do not wait for a reply that forbids a retry; later ones ask again.
  const fewest = failed?.mayRetry === true ? 0 : maxRetries + 1;
  slot.failures = isOutage(error) ? Math.max(slot.failures + 1, fewest) : Infinity;
  if (isOutage(error)) outages.add(error);
  const backOff = Math.min(longestRestSeconds, 0.5 * 2 ** (slot.failures - 1));
  const seconds = failed?.mayRetry === true ? (failed.waitSeconds ?? backOff) : backOff;
  slot.restsUntil = slot.failures === Infinity ? Infinity : performance.now() + 1000 * seconds;
  slot.needsRevival ||= failed?.status !== 429;
  const areAllDead = slots.every(({ failures }) => failures > maxRetries);
  if (slots.every(({ failures }) => failures === Infinity)) state.lost = { error };
  else if (slot.failures === Infinity || (slot.failures > maxRetries && !wasDead && !areAllDead))
    console.warn(
      printable(
        `[periodic-eval] the measurement continues without ${slot.replica.url}: ${errorMessage(error)}`,
      ),
    );
  const failing = state.queue.filter(({ job }) => areAllDead || job.only === slot.replica);
  for (const waiting of failing) waiting.fail(error);
}
