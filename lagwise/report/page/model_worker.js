// The model, in a worker of its own: what it computes never holds up the page. The worker
// is made from the text of this one function, so it uses nothing outside itself.
//
//   in   {open: {module, model, prompt, sampling}}   bytes, ids, {temperature, topP, seed}
//        {until: beat}                               play as far as that
//   out  {tracks}                                    opened: names, by number
//        {notes, tokens, beat, seconds, bytes}       what came, and what it took
//        {failed}                                    why; nothing more comes

function modelWorker() {
  const SLICE = 64;  // tokens between two messages
  const NOTE = 5;    // numbers of a note: track, start, end, pitch, velocity

  let exports = null;
  let player = 0;
  let goal = 0;
  let working = false;

  const bytes = (at, size) => new Uint8Array(exports.memory.buffer, at, size);
  const words = (at, size) => new TextDecoder().decode(bytes(at, size));

  /** Copies bytes into the module, where they stay. */
  function put(source) {
    const at = exports.lagwise_allocate(source.byteLength);
    bytes(at, source.byteLength).set(new Uint8Array(source));
    return at;
  }

  function textAt(at) {
    let end = at;
    while (bytes(end, 1)[0]) ++end;
    return words(at, end - at);
  }

  /** What the C library asks of its system. There are no files here, and nobody reads. */
  function system() {
    const BAD_DESCRIPTOR = 8;
    const put32 = (at, value) => new DataView(exports.memory.buffer).setUint32(at, value, true);
    return {
      fd_write(descriptor, list, count, written) {
        let size = 0;
        for (let i = 0; i < count; ++i)
          size += new DataView(exports.memory.buffer).getUint32(list + 8 * i + 4, true);
        put32(written, size);
        return 0;
      },
      clock_time_get(clock, precision, at) {
        new DataView(exports.memory.buffer).setBigUint64(
          at, BigInt(Math.round(performance.now() * 1e6)), true);
        return 0;
      },
      environ_sizes_get(count, size) {
        put32(count, 0);
        put32(size, 0);
        return 0;
      },
      environ_get: () => 0,
      proc_exit(code) { throw new Error(`the module ended itself (${code})`); },
      missing: () => BAD_DESCRIPTOR,
    };
  }

  async function start({module, model, prompt, sampling}) {
    const compiled = await WebAssembly.compile(module);
    const known = system();
    const wasi = Object.fromEntries(
      WebAssembly.Module.imports(compiled).filter((one) => one.module === 'wasi_snapshot_preview1')
        .map(({name}) => [name, known[name] || known.missing]));
    const failed = (at, size) => { throw new Error(words(at, size)); };
    const instance = await WebAssembly.instantiate(
      compiled, {lagwise: {failed}, wasi_snapshot_preview1: wasi});
    exports = instance.exports;
    exports._initialize();
    const ids = Int32Array.from(prompt);
    player = exports.lagwise_play(put(model), model.byteLength, put(ids.buffer), ids.length,
                                  sampling.temperature, sampling.topP, sampling.seed);
    const tracks = Array.from({length: exports.lagwise_play_tracks(player)},
                              (_, i) => textAt(exports.lagwise_play_track_name(player, i)));
    postMessage({tracks});
    report([], 0);  // the notes of the prompt
    work();
  }

  function report(tokens, seconds) {
    const count = exports.lagwise_play_note_count(player);
    const notes = new Float64Array(exports.memory.buffer, exports.lagwise_play_notes(player),
                                   NOTE * count).slice();
    exports.lagwise_play_forget(player);
    postMessage({notes, tokens, seconds, beat: exports.lagwise_play_beat(player),
                 bytes: exports.memory.buffer.byteLength});
  }

  function slice() {
    const began = performance.now();
    const tokens = [];
    while (tokens.length < SLICE && exports.lagwise_play_beat(player) < goal) {
      const token = exports.lagwise_play_next(player);
      if (token < 0) throw new Error('the grammar of its tokens lets nothing follow');
      tokens.push(token);
    }
    if (tokens.length) report(tokens, (performance.now() - began) / 1000);
  }

  /** In slices, so that a new goal is heard between two of them. */
  function work() {
    if (working || !player) return;
    working = true;
    const again = () => guarded(() => {
      slice();
      working = exports.lagwise_play_beat(player) < goal;
      if (working) setTimeout(again);
    });
    again();
  }

  function guarded(act) {
    const tell = (error) => postMessage({failed: error.message});
    try {
      Promise.resolve(act()).catch(tell);
    } catch (error) {
      tell(error);
    }
  }

  onmessage = ({data}) => {
    if (data.open) guarded(() => start(data.open));
    if (data.until === undefined) return;
    goal = data.until;
    work();
  };
}

/** Bytes from their base64. */
function decoded(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
}

/** A worker that has been given the model; `heard(message)` is called with what it says. */
function startModel(open, heard) {
  const address = URL.createObjectURL(
    new Blob([`(${modelWorker})()`], {type: 'text/javascript'}));
  const worker = new Worker(address);
  URL.revokeObjectURL(address);
  worker.onmessage = ({data}) => heard(data);
  worker.onerror = (event) => heard({failed: event.message});
  worker.postMessage({open});
  return worker;
}
