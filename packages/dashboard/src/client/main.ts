import { attempt, startFeatures } from "./features.ts";
import { startLive } from "./live.ts";
import { startPrinting } from "./print.ts";

startFeatures();
attempt(startPrinting);
attempt(() => startLive(startFeatures));
