// Signals: many calls may share an AbortSignal. Node warns of a leak when it has many listeners, so
// it gets one.

const listeners = new WeakMap(); // By signal.

/** Calls `what` when the signal is aborted. Returns how to have it not called any more. */
export function whenAborted(signal, what) {
  const listener = listeners.get(signal) ?? listenTo(signal);
  listener.calls.add(what);
  return () => {
    listener.calls.delete(what);
    if (listener.calls.size > 0) return;
    listeners.delete(signal);
    signal.removeEventListener('abort', listener.tell);
  };
}

function listenTo(signal) {
  const calls = new Set();
  const tell = () => {
    for (const what of [...calls]) what();
  };
  signal.addEventListener('abort', tell, { once: true });
  listeners.set(signal, { calls, tell });
  return listeners.get(signal);
}
