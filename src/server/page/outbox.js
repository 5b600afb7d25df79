/**
 * Messages that Parley hasn't acknowledged yet, in the browser's storage, so that a closed tab, a dead
 * battery or a restart of Parley loses none. Each message has its own entry, so that two tabs never
 * overwrite each other; its id makes sending it twice harmless.
 */
const prefix = 'parley.unsent.';

/** @param {Storage} storage */
export function createOutbox(storage) {
  return {
    /** Returns the entries, oldest first. */
    list() {
      const frames = [];
      for (let i = 0; i < storage.length; i += 1) {
        const key = storage.key(i);
        if (key?.startsWith(prefix)) frames.push(read(storage, key));
      }
      return frames.filter((entry) => entry !== undefined).sort((a, b) => a.at - b.at || a.order - b.order);
    },
    /** Stores an entry; call it before sending. Throws when the storage is full. */
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
    // This page didn't write it, so it contains no message.
    return undefined;
  }
}
