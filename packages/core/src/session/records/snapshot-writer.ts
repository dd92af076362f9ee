// Writes snapshots to the store, retries those that the store refused, and lists them for loggers and hooks.
// `commit` is the only way into the store.
import type { TrainerCallback, Row, Snapshot, SnapshotKey, SnapshotStore } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { keyText, parseSnapshot } from "@periodic-eval/store";
import type { KnownSnapshots } from "./known-snapshots.ts";
import { fallbackSnapshot } from "./new-snapshot.ts";
import type { Reporter } from "./reporter.ts";

/** An error on the way to a snapshot, and the callback that requested the measurement. */
export interface Failure {
  readonly callback: TrainerCallback | null;
  readonly error: unknown;
}

/** A snapshot that hooks have not received yet. */
export interface Announcement {
  readonly snapshot: Snapshot;
  readonly failure: Failure | null;
  /** Whether loggers received it in an earlier session. */
  readonly isLogged: boolean;
}

interface Unwritten {
  readonly snapshot: Snapshot;
  readonly rows: readonly Row[];
  /**
   * Why the snapshot that the store holds under this key is superseded first; null if there is none, or once it is done.
   * Entries of one key share it.
   */
  readonly supersede: { why: string | null };
  /** The store's last refusal. */
  refusal: { readonly error: unknown } | null;
}

export interface CommitOptions {
  /** Why an unsettled snapshot of the same key is superseded first. */
  readonly supersede?: string | null;
  /** The callback whose `onError` is called if the snapshot turns out to be invalid. */
  readonly callback?: TrainerCallback | null;
  readonly failure?: Failure | null;
}

export class SnapshotWriter {
  readonly #store: SnapshotStore;
  readonly #known: KnownSnapshots;
  readonly #reporter: Reporter;
  readonly #lost: () => Error | null;
  #unwritten: Unwritten[] = [];
  #announcements: Announcement[] = [];
  /** Settles when the last write that was started is over. */
  #writing: Promise<void> = Promise.resolve();

  /** @param lost Why nothing can be written any more; null while it can. */
  constructor(
    store: SnapshotStore,
    known: KnownSnapshots,
    reporter: Reporter,
    lost: () => Error | null = () => null,
  ) {
    this.#store = store;
    this.#known = known;
    this.#reporter = reporter;
    this.#lost = lost;
  }

  /**
   * Writes a snapshot and its rows and announces it to loggers and hooks. If the store refuses (a full disk), the snapshot is
   * kept and written with the next one, at the latest at `close`: training continues. A snapshot that violates the schema
   * becomes a `failed` one of the same key.
   */
  async commit(
    unchecked: Snapshot,
    rows: readonly Row[],
    { supersede = null, callback = null, failure = null }: CommitOptions = {},
  ): Promise<void> {
    const { snapshot, error } = this.#validate(unchecked);
    const isSame = (other: { readonly snapshot: Snapshot }) => keyText(other.snapshot) === keyText(snapshot);
    const replaced = this.#unwritten.find(isSame);
    const entry: Unwritten = {
      snapshot,
      rows,
      // Shared with the entry that it replaces, which may be on its way to the store: nothing is superseded twice.
      supersede:
        replaced !== undefined && replaced.supersede.why !== null ? replaced.supersede : { why: supersede },
      refusal: null,
    };
    this.#unwritten = [...this.#unwritten.filter((other) => !isSame(other)), entry];
    await this.writeAll();
    let written = snapshot;
    try {
      // The store adds the name of the rows' file.
      if (!this.#unwritten.includes(entry)) written = (await this.#store.get(snapshot)) ?? snapshot;
    } catch (unread) {
      this.#reporter.warn("store", `could not read ${keyText(snapshot)} back: ${errorMessage(unread)}`);
    }
    this.#known.settle(written);
    this.announce(written, { failure: failure ?? (error === null ? null : { callback, error }) });
  }

  announce(
    snapshot: Snapshot,
    { failure = null, isLogged = false }: Partial<Omit<Announcement, "snapshot">> = {},
  ): void {
    this.#announcements.push({ snapshot, failure, isLogged });
  }

  /** Whether the snapshot waits to be announced. */
  isAnnounced(key: SnapshotKey): boolean {
    return this.#announcements.some(({ snapshot }) => keyText(snapshot) === keyText(key));
  }

  /** Returns the snapshots that wait to be announced. */
  unannounced(): readonly Snapshot[] {
    return this.#announcements.map(({ snapshot }) => snapshot);
  }

  /** Returns the snapshots of which `onSnapshot` has not received the grading. */
  unreported(): readonly Snapshot[] {
    const waiting = new Set(this.#announcements.map(({ snapshot }) => keyText(snapshot)));
    return this.written().filter((stored) => stored.status === "grading" || waiting.has(keyText(stored)));
  }

  get hasAnnouncements(): boolean {
    return this.#announcements.length > 0;
  }

  takeAnnouncement(): Announcement | undefined {
    return this.#announcements.shift();
  }

  /** Writes everything that is not written yet. One write runs at a time. A refused snapshot holds up no other. */
  writeAll(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeEach());
    return this.#writing;
  }

  /** Writes everything, and warns if a checkpoint of this step would leave snapshots behind. */
  async writeBeforeSave(step: number): Promise<void> {
    if (this.#unwritten.length === 0) return;
    await this.writeAll();
    if (this.#unwritten.length === 0 || this.#lost() !== null) return;
    const keys = this.#unwritten.map(({ snapshot }) => keyText(snapshot)).join(", ");
    this.#reporter.warn(
      "store",
      `a run resumed from the checkpoint of step ${step} will lack ${keys}, which could not be written`,
    );
  }

  /** Returns the snapshots that the store refused, each with its last error. */
  refused(): readonly { readonly snapshot: Snapshot; readonly error: unknown }[] {
    return this.#unwritten.map(({ snapshot, refusal }) => ({ snapshot, error: refusal?.error ?? null }));
  }

  /** Returns the settled snapshots that the store holds. */
  written(): readonly Snapshot[] {
    const unwritten = new Set(this.#unwritten.map(({ snapshot }) => keyText(snapshot)));
    return this.#known.settled().filter((snapshot) => !unwritten.has(keyText(snapshot)));
  }

  /** Returns the rows of a snapshot, also while the store lacks it. Throws if they cannot be read. */
  async rows(key: SnapshotKey): Promise<readonly Row[]> {
    const entry = this.#unwritten.find(({ snapshot }) => keyText(snapshot) === keyText(key));
    return entry?.rows ?? this.#store.rows(key);
  }

  /** Returns the rows of a snapshot; null, with a warning that names the `consequence`, if they cannot be read. */
  async rowsOrWarn(key: SnapshotKey, consequence: string): Promise<readonly Row[] | null> {
    try {
      return await this.rows(key);
    } catch (error) {
      this.#reporter.warn(
        "resume",
        `the rows of ${keyText(key)} cannot be read, ${consequence}: ${errorMessage(error)}`,
      );
      return null;
    }
  }

  /** Supersedes a snapshot that does not belong to this training. If the store refuses, the snapshot stays, with a warning. */
  async supersede(key: SnapshotKey, why: string): Promise<void> {
    try {
      await this.#store.supersede(key, why);
      this.#known.remove(key);
    } catch (error) {
      if (this.#lost() === null)
        this.#reporter.warn("store", `could not supersede ${keyText(key)}: ${errorMessage(error)}`);
    }
  }

  async #writeEach(): Promise<void> {
    for (const entry of this.#unwritten) {
      try {
        await this.#write(entry);
        this.#unwritten = this.#unwritten.filter((other) => other !== entry);
      } catch (error) {
        if (this.#lost() === null && entry.refusal === null) {
          this.#reporter.warn(
            "store",
            `could not write ${keyText(entry.snapshot)}, which will be retried: ${errorMessage(error)}`,
          );
        }
        entry.refusal = { error };
        this.#reporter.fail(error);
      }
    }
  }

  async #write({ snapshot, rows, supersede }: Unwritten): Promise<void> {
    if (supersede.why !== null) {
      await this.#store.supersede(snapshot, supersede.why);
      supersede.why = null;
    }
    await this.#store.put(snapshot, rows);
  }

  #validate(snapshot: Snapshot): { readonly snapshot: Snapshot; readonly error: unknown } {
    try {
      return { snapshot: parseSnapshot(snapshot, keyText(snapshot)), error: null };
    } catch (error) {
      this.#reporter.warn(`snapshot ${keyText(snapshot)}`, `is invalid: ${errorMessage(error)}`);
      this.#reporter.fail(error);
      return { snapshot: fallbackSnapshot(snapshot, errorMessage(error)), error };
    }
  }
}
