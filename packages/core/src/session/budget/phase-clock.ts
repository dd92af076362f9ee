/** Seconds of a phase: how long it has run, and for how much of that measuring paused training. */
export interface PhaseSeconds {
  readonly wall: number;
  readonly windows: number;
}

/** Splits the time of a phase into training and windows. All values are in seconds. */
export class PhaseClock {
  readonly #clock: () => number;
  /** The clock's value at which the phase had run for 0 seconds. */
  #origin = 0;
  /** Seconds of all windows that are closed. */
  windowSeconds = 0;
  #windowOpenedAt: number | null = null;

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock();
  }

  /** Starts the phase, or continues one that has already trained and measured for the given seconds. */
  start(openedAt: number, trainingSeconds: number, windowSeconds: number): void {
    this.windowSeconds = windowSeconds;
    this.#origin = openedAt - windowSeconds - trainingSeconds;
  }

  /** Counts the time from `openedAt` until now as a window. */
  countSince(openedAt: number): void {
    this.windowSeconds += this.#clock() - openedAt;
  }

  /** Counts seconds of an earlier session's window that belong to this training too. */
  countEarlier(seconds: number): void {
    this.windowSeconds += seconds;
    this.#origin -= seconds;
  }

  openWindow(): void {
    this.#windowOpenedAt = this.#clock();
  }

  closeWindow(): void {
    if (this.#windowOpenedAt !== null) this.countSince(this.#windowOpenedAt);
    this.#windowOpenedAt = null;
  }

  /** Seconds since the open window was opened; 0 outside windows. */
  secondsInWindow(): number {
    return this.#windowOpenedAt === null ? 0 : this.#clock() - this.#windowOpenedAt;
  }

  seconds(): PhaseSeconds {
    const now = this.#clock();
    const open = this.#windowOpenedAt === null ? 0 : now - this.#windowOpenedAt;
    return { wall: now - this.#origin, windows: this.windowSeconds + open };
  }
}
