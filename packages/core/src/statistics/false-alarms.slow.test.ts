import { testFalseAlarms } from "./false-alarms.test-data.ts";

testFalseAlarms(2_000);
