// A worker: sections 3 and 6 of SPECIFICATION.md. `serve(program)` is all that a program calls.
"use strict";
const { createHash, randomBytes } = require("node:crypto");
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const { constants } = require("node:os");
const path = require("node:path");
const grpc = require("@grpc/grpc-js");
const protobuf = require("protobufjs");
const { Failure } = require("./frame.js");
const { Stage, native, line } = require("./stage.js");
const { Bucket, Cache, Run, Spoilt } = require("./state.js");

const PROTO = protobuf.loadSync(path.join(__dirname, "../../topology-schema/worker.proto"));
const LETTER = PROTO.lookupType("wallaroo.worker.v1.DeadLetter");
const CAPABILITIES = ["crossing", "generate", "split_frames", "in_flight", "check_persist"];
const env = process.env, number = Number(env.WALLAROO_NUMBER ?? 0);
const NEW = { counter: "0", nonce: "0" };
const LIMIT = 65 << 20, STOP_MS = 4000;
const letterBytes = (letter) => Buffer.from(LETTER.encode(LETTER.fromObject(letter)).finish());

/** The in-flight file, written with pwrite. */
class Flight {
  constructor(file) {
    this.word = Buffer.alloc(8);
    if (!file) return;
    try {
      this.file = fs.openSync(file, "r+");
    } catch (error) {
      throw new Failure("W410", `the in-flight file cannot be opened; ${line(error)}`);
    }
    this.write(16, process.pid);
  }
  write(offset, value) {
    if (this.file === undefined) return;
    this.word.writeBigUInt64LE(BigInt(value));
    fs.writeSync(this.file, this.word, 0, 8, offset);
  }
  message(value) {
    this.write(8, value);
  }
  close() {
    if (this.file !== undefined) fs.closeSync(this.file);
  }
}

const points = new Map((env.WALLAROO_FAULT ?? "").split(",").filter(Boolean).map((each) => each.split(":")));
const reached = new Map();
/** Kills this process where a test has asked for it. */
function reach(point) {
  reached.set(point, (reached.get(point) ?? 0) + 1);
  if (String(reached.get(point)) !== points.get(point)) return;
  try {
    if (env.WALLAROO_FAULT_DIR) fs.writeFileSync(path.join(env.WALLAROO_FAULT_DIR, `${point}:${points.get(point)}`), "", { flag: "wx" });
    process.kill(process.pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
}

const failureOf = (error) => ({ code: error instanceof Failure ? error.code : "I901", message: line(error), traceback: error.stack ?? "" });

/** The calls of one endpoint. User code never waits, so a call runs all its messages before another one does. */
class Service {
  constructor(program, endpoints) {
    const processes = endpoints.length;
    Object.assign(this, { program, endpoints, cache: new Cache(Number(env.WALLAROO_STATE_CACHE_BYTES ?? 2 ** 29) / processes) });
    this.checks = env.WALLAROO_CHECK_PERSIST === "1";
  }

  Init({ protocolMin, protocolMax, interfaceHash }) {
    const reply = {
      protocolMin: 1, protocolMax: 1, capabilities: CAPABILITIES, sdkVersion: "0.1.0", language: "javascript", languageVersion: process.version,
      application: this.program.name, interfaceHash: this.program.interfaceHash, codeHash: this.program.codeHash, endpoints: this.endpoints, processId: process.pid,
    };
    const refuse = (code, message) => ({ ...reply, failure: { code, message } });
    if (protocolMin > 1 || protocolMax < 1) return refuse("W402", `this worker speaks version 1 of the protocol, the runtime ${protocolMin} to ${protocolMax}`);
    if (interfaceHash && interfaceHash !== reply.interfaceHash) return refuse("W403", `the interface hash is ${reply.interfaceHash}, not ${interfaceHash}`);
    return reply;
  }

  SplitFrames({ path: at, data, maxMessageBytes }) {
    const { header, length } = this.source("SplitFrames", at, "source"), lengths = [];
    for (let from = 0; from + header <= data.length; from += lengths.at(-1)) {
      const size = length(data.subarray(from, from + header));
      if (from + header + size > data.length || size > Number(maxMessageBytes)) return { lengths, wantedBytes: header + size };
      lengths.push(header + size);
    }
    return { lengths };
  }

  Generate({ path: at, previous, begins, maxCount, maxBytes }) {
    const { first, next } = this.source("Generate", at, "generator"), reply = { encoding: 16, values: [] };
    try {
      let [message, size] = [begins ? first() : next(native.read(previous)), 0];
      for (; message !== null && message !== undefined; message = next(message)) {
        size += reply.values[reply.values.push(native.write(message)) - 1].length;
        if (reply.values.length >= maxCount || size >= maxBytes) return reply;
      }
      return { ...reply, ended: true };
    } catch (error) {
      return { ...reply, failure: { ...failureOf(error), code: "C501" } };
    }
  }

  source(call, at, kind) {
    const found = this.program.components.get(at);
    if (found?.kind !== kind) throw new Failure("W413", `${call} names "${at}", which this worker does not host`);
    return found;
  }

  async *Process(requests, stage, flight) {
    for await (const { data } of requests) {
      if (!data) throw new Failure("W410", "something else where data belongs");
      reach("worker.before_compute");
      stage.begin(data.index, data.skips, flight);
      flight.write(0, data.index);
      stage.run(data.frames);
      const done = { index: data.index, counts: stage.counts() };
      reach("worker.after_compute");
      for (const output of stage.outputs(letterBytes)) yield { output };
      yield { done };
      reach("worker.after_reply");
    }
  }

  async *ProcessState(requests, stage, flight, { application, query }) {
    for (;;) {
      const { value } = await requests.next();
      if (!value) return;
      if (!value.bucket) throw new Failure("W410", "something else where a bucket call belongs");
      yield* this.bucket(value.bucket, requests, stage, flight, JSON.stringify([application, query, stage.id, value.bucket.bucket]));
    }
  }

  async *bucket(call, requests, stage, flight, name) {
    const { index, careful, skips } = call, { counter, nonce } = call.version ?? NEW, parts = [call.frames];
    for (let last = call; last.more; parts.push(last.frames)) last = (await requests.next()).value.bucket;
    reach("worker.before_compute");
    const isNew = counter === "0" && nonce === "0";
    const load = async () => {
      const loaded = new Bucket();
      for (let log = { more: !isNew }; log.more; loaded.read(log.entries)) log = (await requests.next()).value.log;
      return loaded;
    };
    let bucket = this.cache.take(name, `${counter}/${nonce}`);
    if (isNew) bucket = new Bucket();
    else if (careful || !bucket) bucket = (yield { needState: { index } }, await load());
    const attempt = (isCareful) => {
      flight.write(0, index);
      stage.begin(index, skips, flight);
      const run = new Run(stage, bucket, { isCareful, checks: this.checks, isAtWork: careful });
      try {
        return run.messages(parts) ? run.changes(call.wantsSnapshot) : null;
      } catch (error) {
        if (error instanceof Spoilt) return null;
        throw error;
      } finally {
        flight.message(0);
      }
    };
    let entries = attempt(careful || this.checks);
    if (entries === null) {
      if (!isNew) yield { needState: { index, rollback: true } };
      bucket = await load();
      entries = attempt(true);
    }
    reach("worker.after_compute");
    for (const output of stage.outputs(letterBytes)) yield { output };
    for (const entry of entries) yield { change: { index, entries: [entry] } };
    const drawn = (randomBytes(8).readBigUInt64LE() || 1n).toString(), cached = this.cache.file(name, `${BigInt(counter) + 1n}/${drawn}`, bucket);
    yield { done: { index, nonce: drawn, snapshot: call.wantsSnapshot, keys: bucket.cells().length, cachedBytes: cached, counts: stage.counts() } };
    reach("worker.after_reply");
  }

  async stream(method, stream) {
    const requests = requestsOf(stream);
    let flight = null;
    try {
      const { value: { opening } = {} } = await requests.next();
      if (!opening) throw new Failure("W410", "a stream does not begin with its opening");
      flight = new Flight(opening.inFlight);
      for await (const reply of this[method](requests, new Stage(this.program, opening.stage), flight, opening)) {
        if (!stream.write(reply)) await new Promise((resolve) => stream.once("drain", resolve));
      }
    } catch (error) {
      if (!stream.cancelled) stream.write({ failure: failureOf(error) });
    } finally {
      flight?.close();
      stream.end();
    }
  }
}

/** Yields the requests of a stream up to where the client closes its side. */
async function* requestsOf(stream) {
  const waiting = [];
  let wake = () => {}, isOver = false;
  const end = () => ((isOver = true), wake());
  stream.on("data", (request) => (waiting.push(request), stream.pause(), wake()));
  for (const event of ["end", "cancelled", "error"]) stream.on(event, end);
  while (waiting.length || !isOver) {
    if (waiting.length) yield waiting.shift();
    else await new Promise((resolve) => ((wake = resolve), stream.resume()));
  }
}

function server(service) {
  const made = new grpc.Server({ "grpc.max_receive_message_length": LIMIT, "grpc.max_send_message_length": LIMIT });
  const methods = {}, handlers = {}, raw = (bytes) => bytes;
  for (const { name, requestType, responseType, requestStream } of PROTO.lookupService("wallaroo.worker.v1.Worker").methodsArray) {
    const [request, reply] = [requestType, responseType].map((type) => PROTO.lookupType(`wallaroo.worker.v1.${type}`));
    methods[name] = {
      path: `/wallaroo.worker.v1.Worker/${name}`, requestStream: Boolean(requestStream), responseStream: Boolean(requestStream),
      requestDeserialize: (bytes) => request.toObject(request.decode(bytes), { longs: String, enums: String, bytes: Buffer, arrays: true, defaults: true, oneofs: true }),
      responseSerialize: (value) => Buffer.from(reply.encode(reply.fromObject(value)).finish()), requestSerialize: raw, responseDeserialize: raw,
    };
    handlers[name] = requestStream ? (stream) => service.stream(name, stream) : ({ request: asked }, answer) => {
      try {
        answer(null, service[name](asked));
      } catch (error) {
        answer(null, { failure: failureOf(error) });
      }
    };
  }
  made.addService(methods, handlers);
  const check = { path: "/grpc.health.v1.Health/Check", requestStream: false, responseStream: false, requestSerialize: raw, requestDeserialize: raw, responseSerialize: raw, responseDeserialize: raw };
  made.addService({ Check: check }, { Check: (_, answer) => answer(null, Buffer.from([8, 1])) });
  return made;
}

// Integers beyond 2^53, which JSON.parse would round, are texts with a mark until the document is written again.
const exact = (text) => JSON.parse(text.replace(/(?<=[[:,\s])\d{16,}(?=[,\s\]}])/g, '"\\u0001$&"'));
const canonical = (document) => JSON.stringify(document, null, 2).replace(/"\\u0001(\d+)"/g, "$1") + "\n";
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256"));
const OF_A_RUN = ["host", "port", "cookie", "brokers"];

function interfaceHash({ topology_version, name, on_error, pipelines }) {
  const bare = (parts) => parts.map((part) => Object.fromEntries(Object.entries(part).filter(([each]) => !OF_A_RUN.includes(each))));
  const rest = pipelines.map((each) => ({ ...each, sources: bare(each.sources), sinks: bare(each.sinks) }));
  const hashed = { topology_version, name, ...(on_error && { on_error }), pipelines: rest };
  return "sha256:" + sha256(canonical(hashed)).digest("hex");
}

function codeHash(main) {
  const directory = path.dirname(main), names = fs.readdirSync(directory).filter((name) => name.endsWith(".js")).sort();
  return "sha256:" + sha256(...names.flatMap((name) => [name, "\0", sha256(fs.readFileSync(path.join(directory, name))).digest()])).digest("hex");
}

/** Runs the setup, `(args) => ({ document, components })`; the document is the text of the topology without `workers`. */
function load(setup) {
  const args = JSON.parse(env.WALLAROO_ARGS ?? "[]"), main = require.main.filename;
  const { document: text, components } = setup(args), document = exact(text);
  const program = { name: document.name, components: new Map(Object.entries(components)), interfaceHash: interfaceHash(document), codeHash: codeHash(main) };
  const worker = {
    name: "main", language: "javascript", sdk_version: "0.1.0", protocol_version: 1, command: [process.execPath, main], directory: process.cwd(), args,
    call_deadline_ms: 60000, interface_hash: program.interfaceHash, code_hash: program.codeHash,
    components: Object.keys(components).map((at) => ({ path: at, symbol: components[at].name ?? at })),
  };
  return { ...program, document: { ...document, workers: [worker] } };
}

const findings = (error) => JSON.stringify({
  diagnostics: [{ code: "T217", message: `the setup failed; ${line(error)}`, fix: "look at the traceback", traceback: error.stack ?? "" }],
});

/** Starts this program once more for each other endpoint; they end with this process, and it ends with the first of them. */
function startOthers(count, directory) {
  const others = Array.from({ length: count - 1 }, (_, i) =>
    spawn(process.execPath, process.argv.slice(1), { env: { ...env, WALLAROO_NUMBER: i + 1 }, stdio: ["ignore", "inherit", "inherit", "ipc"] }));
  const dies = (child) => (status, signal) => {
    const told = { process_id: child.pid, status: signal ? -constants.signals[signal] : status };
    fs.writeFileSync(path.join(directory, ".ended.json"), JSON.stringify(told));
    fs.renameSync(path.join(directory, ".ended.json"), path.join(directory, "ended.json"));
    others.forEach((each) => each.kill("SIGKILL"));
    process.exit(1);
  };
  others.forEach((child) => child.on("exit", dies(child)));
  const stop = () => others.forEach((child) => child.removeAllListeners("exit") && child.kill());
  const ended = () => Promise.all(others.map((child) => child.exitCode !== null || new Promise((end) => child.on("exit", end))));
  return { stop, ended, ready: Promise.all(others.map((child) => new Promise((ready) => child.once("message", ready)))) };
}

async function work(program) {
  const directory = env.WALLAROO_WORKER_DIR, count = number ? 1 : Math.max(1, Number(env.WALLAROO_WORKER_PROCESSES ?? 1));
  const socket = (i) => path.join(directory, i ? `worker-${i}.sock` : "worker.sock");
  const endpoints = Array.from({ length: Number(env.WALLAROO_WORKER_PROCESSES ?? 1) }, (_, i) => `unix:${socket(i)}`);
  const others = startOthers(count, directory), made = server(new Service(program, endpoints));
  process.on("disconnect", () => process.exit(1));
  if (number && !process.connected) process.exit(1); // the first process ended before this one listened
  process.on("SIGTERM", () => {
    others.stop();
    made.tryShutdown(() => others.ended().then(() => process.exit(0)));
    setTimeout(() => process.exit(0), STOP_MS);
  });
  const temporary = `${socket(number)}.new`;
  await new Promise((bound, failed) => made.bindAsync(`unix:${temporary}`, grpc.ServerCredentials.createInsecure(), (error) => (error ? failed(error) : bound())));
  await others.ready;
  fs.renameSync(temporary, socket(number));
  process.send?.("ready");
}

/** Serves a program, in the mode in which the runtime has started it. */
function serve(setup) {
  if (!["emit", "worker"].includes(env.WALLAROO_MODE)) {
    console.error(`W412 ${path.basename(require.main.filename)} is started by the runtime\n  fix: wallaroo run --topology topology.json`);
    return process.exit(2);
  }
  const isEmit = env.WALLAROO_MODE === "emit";
  try {
    var program = load(setup);
  } catch (error) {
    fs.writeFileSync(isEmit ? env.WALLAROO_EMIT_FILE : path.join(env.WALLAROO_WORKER_DIR, "failure.json"), findings(error));
    return process.exit(isEmit ? 0 : 3);
  }
  if (isEmit) return fs.writeFileSync(env.WALLAROO_EMIT_FILE, `{"topology": ${canonical(program.document)}}`);
  return work(program);
}

module.exports = { serve };
