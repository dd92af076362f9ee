import type { Trigger } from "@periodic-eval/contracts";
import {
  atPercents,
  atSteps,
  everyEpochs,
  everyPercent,
  everySeconds,
  everySteps,
  timesPerPhase,
} from "../../schedule/triggers.ts";
import { defaultPercents, type PhaseEvalConfig } from "./config-schema.ts";

/** Returns the triggers of a callback. With a `schedule`, the default percents do not apply; percents in the block do. */
export function scheduleOf(block: PhaseEvalConfig, key: keyof typeof defaultPercents): readonly Trigger[] {
  const schedule = triggersOf(block.schedule);
  const percent = block[key] ?? (schedule.length === 0 ? defaultPercents[key] : null);
  return percent === null ? schedule : [everyPercent(percent), ...schedule];
}

/** Returns the triggers of an entry of `evaluations`: its own percents and schedule, else those of the block. */
export function scheduleOfEntry(
  block: PhaseEvalConfig,
  { every_percent: percent, schedule }: PhaseEvalConfig["evaluations"][number],
): readonly Trigger[] {
  const merged = {
    ...block,
    eval_every_percent: percent ?? (schedule === undefined ? block.eval_every_percent : null),
    schedule: schedule ?? (percent === undefined ? block.schedule : {}),
  };
  return scheduleOf(merged, "eval_every_percent");
}

function triggersOf(schedule: PhaseEvalConfig["schedule"]): readonly Trigger[] {
  const { every_steps, every_epochs, every_seconds, at_steps, at_percents, times_per_phase } = schedule;
  return [
    ...(every_steps === undefined ? [] : [everySteps(every_steps)]),
    ...(every_epochs === undefined ? [] : [everyEpochs(every_epochs)]),
    ...(every_seconds === undefined ? [] : [everySeconds(every_seconds)]),
    ...(at_steps === undefined ? [] : [atSteps(at_steps)]),
    ...(at_percents === undefined ? [] : [atPercents(at_percents)]),
    ...(times_per_phase === undefined ? [] : [timesPerPhase(times_per_phase)]),
  ];
}
