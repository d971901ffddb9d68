// Counts the words of a text: the application that topology.json describes.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { serve } = require("./worker.js");

const components = {
  "0/sources/0": {
    kind: "source", name: "lines", header: 4, length: (header) => header.readUInt32BE(0),
    decode: (payload) => payload.toString(),
  },
  "0/steps/0": {
    kind: "computation_multi", name: "split into words", run: (line) => line.toLowerCase().match(/[a-z]+/g),
  },
  "0/steps/1": {
    kind: "state_computation", name: "count", key: (word) => word,
    state: { name: "totals", build: () => ({ total: 0 }) },
    run(word, state) {
      state.total += 1;
      return [`${word}: ${state.total}\n`, true];
    },
  },
  "0/sinks/0": { kind: "sink", name: "counts", encode: (text) => text },
};

serve(() => ({ document: fs.readFileSync(path.join(__dirname, "topology.json"), "utf8"), components }));
