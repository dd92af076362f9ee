import { pausedSeconds } from "#platform";

/**
 * Returns seconds since an arbitrary origin, without the pauses of this process. All durations come from this clock: a jump of
 * the system's clock does not change it.
 */
export const workingSeconds = (): number => performance.now() / 1000 - pausedSeconds();
