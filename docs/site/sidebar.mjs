/** The order of pages in the sidebar. scripts/docs/stage.mjs takes their titles from their first lines; a page that is missing here is an error. */
export const sections = [
  { text: "Start", pages: ["install.md", "tutorial.md"] },
  {
    text: "Guides",
    pages: [
      "guides/index.md",
      "guides/trl.md",
      "guides/pytorch.md",
      "guides/several-gpus.md",
      "guides/watch.md",
      "guides/tensorflow-js.md",
      "guides/fine-tuning.md",
      "guides/training-file.md",
      "guides/transformers-js.md",
      "guides/browser.md",
      "guides/evaluation.md",
      "guides/custom-benchmark.md",
      "guides/benchmarks.md",
      "guides/judges.md",
      "guides/signals.md",
      "guides/personas.md",
      "guides/ci.md",
      "guides/resuming.md",
      "guides/seeds.md",
      "guides/results.md",
      "guides/data.md",
      "guides/loggers.md",
      "guides/backends.md",
      "guides/servers.md",
      "guides/feedback.md",
    ],
  },
  {
    text: "Coming from",
    pages: [
      "guides/from-trl-and-wandb.md",
      "guides/from-lm-evaluation-harness.md",
      "guides/from-inspect.md",
      "guides/from-keras.md",
    ],
  },
  {
    text: "Reference",
    pages: [
      "reference/index.md",
      "reference/command-line.md",
      "reference/configuration.md",
      "reference/snapshot.md",
      "reference/trainers.md",
      "reference/live-protocol.md",
    ],
  },
  {
    text: "Explanations",
    pages: [
      "explanations/index.md",
      "explanations/statistics.md",
      "explanations/receipt.md",
      "explanations/measurement.md",
      "explanations/threat-model.md",
      "explanations/budget.md",
      "explanations/overhead.md",
      "performance.md",
      "explanations/power.md",
      "explanations/coverage.md",
      "explanations/scale.md",
      "explanations/refusal.md",
      "explanations/case-study.md",
      "explanations/harness-parity.md",
      "explanations/described-systems.md",
    ],
  },
];

/** Sections whose pages are made at build time, or listed by name. */
export const generatedSections = [
  { text: "API", under: "reference/api/" },
  { text: "Examples", under: "examples/" },
  { text: "Decisions", under: "decisions/" },
];

export const nav = [
  { text: "Tutorial", link: "/tutorial" },
  { text: "Guides", link: "/guides/" },
  { text: "Reference", link: "/reference/" },
  { text: "Explanations", link: "/explanations/" },
  { text: "Performance", link: "/performance" },
  { text: "Examples", link: "/examples/" },
];
