import type { Logger, PhaseBegin } from "@periodic-eval/core";

/** The loggers of a training and of its session: each logger receives every event once. */
export interface JoinedLoggers {
  readonly ofTraining: readonly Logger[];
  readonly ofMeasuring: readonly Logger[];
  /** Settles when the measuring session has passed its checks; it goes on when training has begun. */
  readonly isChecked: Promise<PhaseBegin>;
  /** Lets the measuring session go on if training does not begin. */
  release(): void;
}

export function joinLoggers(loggers: readonly Logger[]): JoinedLoggers {
  let showChecked: (at: PhaseBegin) => void;
  const isChecked = new Promise<PhaseBegin>((resolve) => (showChecked = resolve));
  let showBegun: () => void;
  const hasBegun = new Promise<void>((resolve) => (showBegun = resolve));
  const gate: Logger = {
    name: "beside",
    begin: (at) => (showChecked(at), hasBegun),
  };
  const opening: Logger = { name: "beside", begin: () => showBegun() };
  return {
    isChecked,
    release: () => showBegun(),
    ofTraining: [...loggers.map((logger) => trainingPart(logger, isChecked)), opening],
    ofMeasuring: [gate, ...loggers.map(measuringPart)],
  };
}

const patienceOf = ({ patienceSeconds }: Logger) =>
  patienceSeconds === undefined ? {} : { patienceSeconds };

/** The snapshots that stand are those of the measuring session; the progress is that of training. */
const trainingPart = (logger: Logger, isChecked: Promise<PhaseBegin>): Logger => ({
  name: logger.name,
  ...patienceOf(logger),
  async begin({ measuresNothing: _nothing, standing: _none, ...at }) {
    const { standing, run, measuresNothing, startsAgainAfter } = await isChecked;
    await logger.begin?.({
      ...at,
      standing,
      ...(run !== undefined && { run }),
      ...(measuresNothing && { measuresNothing }),
      ...(startsAgainAfter !== undefined && !at.resumed && { startsAgainAfter }),
    });
  },
  train: (metrics, at) => logger.train?.(metrics, at),
  event: (event) => logger.event?.(event),
});

const measuringPart = (logger: Logger): Logger => ({
  name: logger.name,
  ...patienceOf(logger),
  snapshot: (snapshot) => logger.snapshot?.(snapshot),
  train: (metrics, at) => logger.train?.(metrics, at),
  event: (event) => logger.event?.(event),
  end: (at) => logger.end?.(at),
  close: () => logger.close?.(),
});
