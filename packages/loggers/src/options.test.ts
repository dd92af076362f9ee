import { expect, it } from "vitest";
import { csvLogger } from "./lines/csv.ts";
import { jsonlLogger } from "./lines/jsonl.ts";
import { mlflowLogger } from "./mlflow/index.ts";
import { tensorBoardLogger } from "./tensorboard/index.ts";
import { wandbLogger } from "./wandb/index.ts";

it.each([
  [() => jsonlLogger({ path: "" }), 'jsonlLogger options.path: got "", expected a path'],
  [
    () => csvLogger({ file: "a.csv" } as never),
    'csvLogger options.file: got the unknown option "file", expected one of path',
  ],
  [
    () => tensorBoardLogger({ logdir: "tb" } as never),
    'tensorBoardLogger options.logdir: got the unknown option "logdir", expected one of logDir, now. Did you mean "logDir"?',
  ],
  [
    () => mlflowLogger({ trackingUri: "http://127.0.0.1:9" } as never),
    "mlflowLogger options.runDir: got undefined, expected a path",
  ],
  [
    () => mlflowLogger({ trackingUri: "http://127.0.0.1:9", runDir: "run", closeSeconds: Number.NaN }),
    "mlflowLogger options.closeSeconds: got NaN, expected seconds, 0 or more",
  ],
  [
    () => wandbLogger({ runDir: "run", projekt: "p" } as never),
    'wandbLogger options.projekt: got the unknown option "projekt"',
  ],
])("rejects a wrong option at construction (%#)", (make, message) => {
  expect(make).toThrow(message);
});
