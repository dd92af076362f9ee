import type { Destination } from "./outbox/sending.ts";

export interface MortalDestination extends Destination {
  /** Number of points that were sent. */
  readonly sent: number;
  /** Simulates the death of the sending process: pending calls never settle. */
  die(): Promise<void>;
}

export function mortal(destination: Destination): MortalDestination {
  let isDead = false;
  let sent = 0;
  const unlessDead = async <T>(work: () => Promise<T>): Promise<T> => {
    const result = await (isDead
      ? never
      : work().catch((error: unknown) => (isDead ? never : Promise.reject(error))));
    return isDead ? never : result;
  };
  return {
    ...destination,
    get sent() {
      return sent;
    },
    open: (...given) => unlessDead(() => destination.open(...given)),
    async send(...given) {
      const taken = await unlessDead(() => destination.send(...given));
      sent += taken;
      return taken;
    },
    async die() {
      isDead = true;
      await destination.close(false);
    },
  };
}

const never = new Promise<never>(() => {});
