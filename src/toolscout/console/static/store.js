// Values that several parts of the page share. A component that uses one is drawn again when it changes.
import { useEffect, useLayoutEffect, useState } from "./html.js";

export function store(value) {
  const listeners = new Set();
  return {
    get: () => value,
    set(next) {
      value = next;
      for (const listener of listeners) listener(value);
    },
    use() {
      const [current, setCurrent] = useState(value);
      useEffect(() => {
        const listener = (next) => setCurrent(() => next);
        listeners.add(listener);
        listener(value);
        return () => listeners.delete(listener);
      }, []);
      return current;
    },
  };
}

// What was kept in the browser under a name. Anything else that is there, as by another version, counts as nothing.
export function kept(storage, place, fits) {
  try {
    const items = JSON.parse(storage.getItem(place) || "[]");
    return items.filter(fits);
  } catch {
    return [];
  }
}

// Loads something, and again when one of `inputs` changes. The answer to an older request never replaces a newer one.
export function useLoad(load, inputs) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const [count, setCount] = useState(0);
  // A layout effect, because others wait for the next paint, and people type.
  useLayoutEffect(() => {
    const control = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    load(control.signal).then(
      (data) => control.signal.aborted || setState({ data, error: null, loading: false }),
      (error) => control.signal.aborted || setState((before) => ({ data: before.data, error, loading: false })),
    );
    return () => control.abort();
  }, [...inputs, count]);
  return { ...state, reload: () => setCount((before) => before + 1) };
}
