// A run over a service, for service-run.test.ts, that is killed when its first update is done and its line not yet written.
import type { HarnessConfig } from "../config/schema.ts";
import { httpEngine } from "../engine/http-engine.ts";
import { runHarness } from "../harness/run-harness.ts";

const [serviceUrl, config] = process.argv.slice(2) as [string, string];
const engine = httpEngine({ serviceUrl });
await runHarness(JSON.parse(config) as HarnessConfig, {
  engine: {
    ...engine,
    async open(request) {
      const model = await engine.open(request);
      return {
        ...model,
        async update(...args: Parameters<typeof model.update>) {
          const report = await model.update(...args);
          process.kill(process.pid, "SIGKILL");
          return report;
        },
      };
    },
  },
});
