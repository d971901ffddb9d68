// A worker: sections 3 and 4 of SPECIFICATION.md. `serve(setup)` is all that a program calls.
"use strict";
const { createHash, randomBytes } = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const grpc = require("@grpc/grpc-js");
const { loadSync } = require("@grpc/proto-loader");
const { Failure } = require("./frame.js");
const { Stage, firstLine } = require("./stage.js");
const { Bucket } = require("./state.js");

const FORM = { longs: String, enums: String, arrays: true, defaults: true, oneofs: true };
const PROTO = loadSync(path.join(__dirname, "../../topology-schema/worker.proto"), FORM);
const letterBytes = (letter) => PROTO["wallaroo.worker.v1.DeadLetter"].serialize(letter);
const LIMIT = 65 << 20, STOP_MS = 4000;
const { env } = process;

/** The calls of a worker. User code never waits, so a call runs all its messages before another one does. */
class Service {
  constructor(program, endpoint) {
    Object.assign(this, { program, endpoint });
  }

  init({ protocolMin, protocolMax, interfaceHash }) {
    const { hash } = this.program;
    const reply = {
      protocolMin: 1, protocolMax: 1, language: "javascript", interfaceHash: hash,
      endpoints: [this.endpoint], processId: process.pid,
    };
    if (protocolMin > 1 || protocolMax < 1) {
      reply.failure = { code: "W416", message: `version 1 is not in ${protocolMin} to ${protocolMax}` };
    } else if (interfaceHash && interfaceHash !== hash) {
      reply.failure = { code: "W403", message: `the interface hash is ${hash}, not ${interfaceHash}` };
    }
    return reply;
  }

  /** Yields the replies to a stream of data for a stage without state. */
  async *process(requests, { stage: description }) {
    for await (const { data } of requests) {
      const stage = new Stage(this.program, description, data.skips);
      for (const message of stage.messages(data.frames)) stage.enter(message);
      for (const output of stage.outputs(data.index, letterBytes)) yield { output };
      yield { done: { index: data.index, counts: stage.counts() } };
    }
  }

  /** Yields the replies to a stream of bucket calls; there is no cache, so each begins with the log. */
  async *processState(requests, { stage: description }) {
    const next = async (kind) => (await requests.next()).value?.[kind];
    for (let call = await next("bucket"); call; call = await next("bucket")) {
      const { index, version, skips, wantsSnapshot } = call, bytes = [call.frames];
      for (let last = call; last.more; bytes.push(last.frames)) last = await next("bucket");
      let stage, bucket, entries = null;
      for (const isCareful of [false, true]) {
        if (entries) break;
        bucket = new Bucket();
        if ((version?.counter ?? "0") !== "0") {
          yield { needState: { index, rollback: isCareful } };
          for (let log = { more: true }; log.more; bucket.read(log.entries)) log = await next("log");
        }
        stage = new Stage(this.program, description, skips);
        entries = bucket.run(stage, Buffer.concat(bytes), isCareful, wantsSnapshot);
      }
      for (const output of stage.outputs(index, letterBytes)) yield { output };
      for (const entry of entries) yield { change: { index, entries: [entry] } };
      const nonce = (randomBytes(8).readBigUInt64LE() | 1n).toString();
      const keys = bucket.cells.size, counts = stage.counts();
      yield { done: { index, nonce, snapshot: wantsSnapshot, keys, counts } };
    }
  }

  /** Answers a stream: `replies` is one of the two generators above. */
  async answer(stream, replies) {
    try {
      const requests = stream.iterator({ destroyOnReturn: false });
      const { opening } = (await requests.next()).value ?? {};
      if (!opening) throw new Failure("W410", "a stream does not begin with its opening");
      for await (const reply of replies.call(this, requests, opening)) {
        if (!stream.write(reply)) await new Promise((resolve) => stream.once("drain", resolve));
      }
    } catch (error) {
      const code = error instanceof Failure ? error.code : "I901";
      const failure = { code, message: firstLine(error), traceback: error.stack };
      if (!stream.cancelled) stream.write({ failure });
    }
    stream.end();
  }

  serve(socket) {
    const server = new grpc.Server({
      "grpc.max_receive_message_length": LIMIT, "grpc.max_send_message_length": LIMIT,
    });
    server.addService(PROTO["wallaroo.worker.v1.Worker"], {
      init: ({ request }, reply) => reply(null, this.init(request)),
      process: (stream) => this.answer(stream, this.process),
      processState: (stream) => this.answer(stream, this.processState),
    });
    const raw = (bytes) => bytes;
    const check = {
      path: "/grpc.health.v1.Health/Check", requestStream: false, responseStream: false,
      requestSerialize: raw, requestDeserialize: raw, responseSerialize: raw, responseDeserialize: raw,
    };
    const SERVING = Buffer.from([8, 1]); // of HealthCheckResponse: status 1
    server.addService({ check }, { check: (_, reply) => reply(null, SERVING) });
    process.on("SIGTERM", () => {
      server.tryShutdown(() => process.exit(0));
      setTimeout(() => process.exit(0), STOP_MS);
    });
    server.bindAsync(`unix:${socket}.new`, grpc.ServerCredentials.createInsecure(), (error) => {
      if (error) throw error;
      fs.renameSync(`${socket}.new`, socket);
    });
  }
}

const sha256 = (data) => "sha256:" + createHash("sha256").update(data).digest("hex");
// Integers beyond 2^53, which JSON.parse would round, are texts with a mark until they are written again.
const exact = (text) => JSON.parse(text.replace(/(?<=[[:,\s])\d{16,}(?=[,\s\]}])/g, '"\\u0001$&"'));
const canonical = (document) => JSON.stringify(document, null, 2).replace(/"\\u0001(\d+)"/g, "$1") + "\n";

function interfaceHash({ topology_version, name, on_error, pipelines }) {
  const bare = ({ host, port, cookie, brokers, ...rest }) => rest;
  const hashed = pipelines.map((each) => {
    return { ...each, sources: each.sources.map(bare), sinks: each.sinks.map(bare) };
  });
  return sha256(canonical({ topology_version, name, on_error, pipelines: hashed }));
}

/** Runs the setup, `(args) => ({ document, components })`; the document is the topology without `workers`. */
function load(setup) {
  const args = JSON.parse(env.WALLAROO_ARGS ?? "[]"), main = require.main.filename;
  const { document: text, components } = setup(args), document = exact(text);
  const hash = interfaceHash(document), code = sha256(fs.readFileSync(main));
  const worker = {
    name: "main", language: "javascript", sdk_version: "0.1.0", protocol_version: 1,
    command: [process.execPath, main], directory: process.cwd(), args, call_deadline_ms: 60000,
    interface_hash: hash, code_hash: code, components: [],
  };
  const topology = { ...document, workers: [worker] };
  return { name: document.name, components, hash, topology };
}

/** Serves a program, in the mode in which the runtime has started it. */
function serve(setup) {
  const { WALLAROO_MODE: mode, WALLAROO_WORKER_DIR: directory, WALLAROO_EMIT_FILE: emitted } = env;
  if (mode !== "emit" && mode !== "worker") {
    console.error("W412 the runtime starts this program\n  fix: wallaroo run topology.json");
    process.exit(2);
  }
  try {
    const program = load(setup), socket = path.join(directory, "worker.sock");
    if (mode === "worker") return new Service(program, `unix:${socket}`).serve(socket);
    return fs.writeFileSync(emitted, `{"topology": ${canonical(program.topology)}}`);
  } catch (error) {
    const message = `the setup failed; ${firstLine(error)}`;
    const finding = { code: "T217", message, fix: "look at the traceback", traceback: error.stack };
    const file = mode === "emit" ? emitted : path.join(directory, "failure.json");
    fs.writeFileSync(file, JSON.stringify({ diagnostics: [finding] }));
    return process.exit(mode === "emit" ? 0 : 3);
  }
}

module.exports = { serve };
