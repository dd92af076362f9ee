import type { Destination } from "./outbox/outbox-logger.ts";

export interface MortalDestination extends Destination {
  /** The process that sends is no more: what it was doing is never answered. */
  die(): Promise<void>;
}

export function mortal(destination: Destination): MortalDestination {
  let isDead = false;
  const unlessDead = async <T>(work: () => Promise<T>): Promise<T> => {
    const result = await (isDead ? never : work().catch((error: unknown) => (isDead ? never : Promise.reject(error))));
    return isDead ? never : (result as T);
  };
  return {
    ...destination,
    open: (...given) => unlessDead(() => destination.open(...given)),
    send: (...given) => unlessDead(() => destination.send(...given)),
    async die() {
      isDead = true;
      await destination.close(false);
    },
  };
}

const never = new Promise<never>(() => {});
