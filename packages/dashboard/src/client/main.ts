import { startFeatures } from "./features.ts";
import { startLive } from "./live.ts";

startFeatures();
startLive(startFeatures);
