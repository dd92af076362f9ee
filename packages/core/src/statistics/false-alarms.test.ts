import { testFalseAlarms } from "./false-alarms.test-data.ts";

testFalseAlarms(100);
