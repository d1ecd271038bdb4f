// Heap: entries [at, number, what], the smallest first.

function isLess(a, b) {
  return a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
}

export class Heap {
  #entries = [];

  get size() {
    return this.#entries.length;
  }

  get first() {
    return this.#entries[0];
  }

  push(entry) {
    const entries = this.#entries;
    let index = entries.length;
    entries.push(entry);
    while (index > 0) {
      const above = (index - 1) >> 1;
      if (!isLess(entry, entries[above])) break;
      entries[index] = entries[above];
      index = above;
    }
    entries[index] = entry;
  }

  pop() {
    const entries = this.#entries;
    const first = entries[0];
    const last = entries.pop();
    if (entries.length > 0) this.#sink(last);
    return first;
  }

  /** Keeps those of which `keep` is true. */
  filter(keep) {
    // Sorted entries are a heap.
    this.#entries = this.#entries.filter(keep).sort((a, b) => (isLess(a, b) ? -1 : 1));
  }

  #sink(entry) {
    const entries = this.#entries;
    let index = 0;
    for (;;) {
      let below = 2 * index + 1;
      if (below >= entries.length) break;
      if (below + 1 < entries.length && isLess(entries[below + 1], entries[below])) below += 1;
      if (!isLess(entries[below], entry)) break;
      entries[index] = entries[below];
      index = below;
    }
    entries[index] = entry;
  }
}
