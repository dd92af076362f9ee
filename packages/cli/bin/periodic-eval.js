#!/usr/bin/env node
// Stands in the repository, because npm links it before anything is built.
import "../dist/main.js";
