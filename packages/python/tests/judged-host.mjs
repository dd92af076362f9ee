// The host of test_verdicts.py: that of `periodic-eval live`, with a callback that ends training by a verdict.
import { buildPeriodicEval } from "@periodic-eval/core";
import { serveTrainer } from "@periodic-eval/live";
import { openJudge } from "@periodic-eval/remote";

const stopByVerdict = {
  id: "stop",
  asks: [],
  onSnapshot(context, { id, status, step }) {
    if (id === "alignment" && status === "complete") context.requestStop(`a verdict on step ${step}`);
  },
};

await serveTrainer({
  input: process.stdin,
  output: process.stdout,
  async open({ config, phase }) {
    const { callbacks, session } = await buildPeriodicEval({ periodic_eval: config }, { phase, openJudge });
    return { ...session, callbacks: [...callbacks, stopByVerdict], loggers: [] };
  },
  warn: (message) => process.stderr.write(`${message}\n`),
});
