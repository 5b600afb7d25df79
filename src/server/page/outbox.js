/**
 * Messages that Parley has not acknowledged yet, in the browser's own storage: a closed tab, a dead
 * battery or a restart of Parley loses none. One entry per message, so that two tabs never overwrite
 * each other; the id makes sending twice harmless.
 */
const prefix = 'parley.unsent.';

/** @param {Storage} storage */
export function createOutbox(storage) {
  return {
    /** Oldest first. */
    list() {
      const frames = [];
      for (let i = 0; i < storage.length; i += 1) {
        const key = storage.key(i);
        if (key?.startsWith(prefix)) frames.push(read(storage, key));
      }
      return frames.filter((entry) => entry !== undefined).sort((a, b) => a.at - b.at || a.order - b.order);
    },
    /** Keeps it before anything is sent. Throws when the storage is full. */
    put(entry) {
      storage.setItem(prefix + entry.frame.id, JSON.stringify(entry));
    },
    remove(id) {
      storage.removeItem(prefix + id);
    },
    clear() {
      for (const { frame } of this.list()) storage.removeItem(prefix + frame.id);
    },
  };
}

function read(storage, key) {
  try {
    return JSON.parse(storage.getItem(key) ?? '');
  } catch {
    // Not written by this page: nothing of a person's is in it.
    return undefined;
  }
}
