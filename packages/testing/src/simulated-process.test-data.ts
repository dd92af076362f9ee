import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate } from "node:timers";
import { fileError, type SimulatedDisk } from "./simulated-disk.test-data.ts";

/** A fault of one operation of the disk. */
export interface Fault {
  /** The number of the operation, from 1. */
  readonly at: number;
  /** `die`: this operation and all later ones fail, after a part of a write. Else the system's error code. */
  readonly kind: "die" | { readonly errno: string; readonly isLasting: boolean };
  /** How much of a write that dies or fails happens, from 0 to 1. */
  readonly share: number;
}

/** A process that uses a simulated disk. */
export class SimulatedProcess {
  readonly disk: SimulatedDisk;
  readonly name: string;
  /** The operations so far. */
  operations = 0;
  isDead = false;
  /** Set once the fault has happened. */
  failed: string | null = null;
  readonly #fault: Fault | null;
  readonly #turns: Turns | null;

  constructor(disk: SimulatedDisk, name: string, fault: Fault | null = null, turns: Turns | null = null) {
    this.disk = disk;
    this.name = name;
    this.#fault = fault;
    this.#turns = turns;
  }

  /** Runs work as this process: its files below the disk's root are those of the disk. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#turns !== null) return sideBySide.run(this, work);
    // oxlint-disable-next-line typescript/no-this-alias -- the process whose operations these are
    running = this;
    try {
      return await work();
    } finally {
      running = null;
    }
  }

  /** Waits until it is this process's turn. */
  turn(): Promise<void> | undefined {
    return this.#turns?.next();
  }

  /**
   * Counts an operation before it happens, and fails it where the fault is.
   *
   * @param half Does a part of the operation, for a fault in its middle.
   */
  begin(syscall: string, path: string, half?: (share: number) => void): void {
    if (this.isDead) throw new Error(`the process is dead, ${syscall} '${path}'`);
    this.operations += 1;
    const fault = this.#fault;
    if (fault === null || this.operations < fault.at) return;
    if (fault.kind === "die") {
      half?.(fault.share);
      this.isDead = true;
      this.failed = `${syscall} ${path}`;
      throw new Error(`the process is dead, ${syscall} '${path}'`);
    }
    const { errno, isLasting } = fault.kind;
    // A full disk can still be read.
    const isReading = /^(scandir|stat|read|access)$/.test(syscall);
    // A folder that nobody may read cannot be synced, which the store accepts.
    const isAccepted = /^(access|fsync)$/.test(syscall) && errno === "EACCES";
    if (isAccepted || (isReading && errno === "ENOSPC") || (this.failed !== null && !isLasting)) return;
    half?.(fault.share);
    this.failed ??= `${errno} of ${syscall} ${path}`;
    throw fileError(errno, syscall, path);
  }
}

/** A map of which each process has another one: globals that processes do not share. */
class MapOfProcess extends Map<unknown, unknown> {
  readonly #maps = new WeakMap<object, Map<unknown, unknown>>();

  get #own(): Map<unknown, unknown> {
    const process = currentProcess() ?? this;
    if (!this.#maps.has(process)) this.#maps.set(process, new Map());
    return this.#maps.get(process)!;
  }
  override get size(): number {
    return this.#own.size;
  }
  override get = (key: unknown) => this.#own.get(key);
  override has = (key: unknown) => this.#own.has(key);
  override set = (key: unknown, value: unknown) => (this.#own.set(key, value), this);
  override delete = (key: unknown) => this.#own.delete(key);
}

// The store's folders whose locks this process has, its locks between sessions, and the folders that it has synced. Its modules are loaded later.
for (const name of ["folders", "kept-locks", "durable"])
  Object.assign(globalThis, { [Symbol.for(`periodic-eval.${name}`)]: new MapOfProcess() });

/** The process that runs alone. A variable, because an AsyncLocalStorage takes as long as the programs. */
let running: SimulatedProcess | null = null;
const sideBySide = new AsyncLocalStorage<SimulatedProcess>();

/** The process that calls; null for the test itself. */
export const currentProcess = (): SimulatedProcess | null => running ?? sideBySide.getStore() ?? null;

/** Lets processes take turns at their operations, in an order that `random` chooses. */
export class Turns {
  readonly #random: () => number;
  readonly #waiting: (() => void)[] = [];

  constructor(random: () => number) {
    this.#random = random;
  }

  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Runs works side by side until all have ended. */
  async run(works: readonly Promise<unknown>[]): Promise<void> {
    let left = works.length;
    for (const work of works) void work.finally(() => (left -= 1)).catch(() => undefined);
    while (left > 0) {
      // Between two operations, programs only run microtasks.
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#waiting.length === 0) continue;
      const [next] = this.#waiting.splice(Math.floor(this.#random() * this.#waiting.length), 1);
      next!();
    }
    sideBySide.disable();
  }
}
