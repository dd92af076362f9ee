import type { Destination } from "./outbox/sending.ts";

export interface KillableDestination extends Destination {
  /** Number of points that were sent. */
  readonly sent: number;
  /** Simulates a kill of the sending process: pending calls never settle. */
  kill(): Promise<void>;
}

/** Wraps a destination so that a test can kill it. */
export function killable(destination: Destination): KillableDestination {
  let isKilled = false;
  let sent = 0;
  const unlessKilled = async <T>(work: () => Promise<T>): Promise<T> => {
    const result = await (isKilled
      ? never
      : work().catch((error: unknown) => (isKilled ? never : Promise.reject(error))));
    return isKilled ? never : result;
  };
  return {
    ...destination,
    get sent() {
      return sent;
    },
    open: (...args) => unlessKilled(() => destination.open(...args)),
    async send(...args) {
      const taken = await unlessKilled(() => destination.send(...args));
      sent += taken;
      return taken;
    },
    async kill() {
      isKilled = true;
      await destination.close(false);
    },
  };
}

const never = new Promise<never>(() => {});
