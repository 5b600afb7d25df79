import { dropFile, sendFile } from '/page/api.js';
import { randomId } from '/page/random-id.js';
import htm from '/vendor/htm.js';
import { h } from '/vendor/preact.js';

const html = htm.bind(h);
const maxFiles = 10;
/** Longest text of a message, in UTF-16 code units, as the gateway accepts it. */
export const maxTextLength = 32_000;

/** Returns a text that is too long for a message as a file. */
export function asTextFile(text) {
  return new File([text], 'pasted-text.txt', { type: 'text/plain' });
}

/**
 * Manages the draft's files, which are uploaded as soon as they are chosen; the message refers to them. `files`: { key,
 * name, mimeType, sizeBytes, ref?, problem? }
 */
export function createAttachments(page) {
  const change = (key, news) =>
    page.update({
      files: page.state().files.map((file) => (file.key === key ? { ...file, ...news } : file)),
    });
  return {
    isFull: () => page.state().files.length >= maxFiles,
    add: (chosen) => {
      for (const file of [...chosen].slice(0, maxFiles - page.state().files.length)) {
        const entry = { key: randomId(), name: file.name, mimeType: file.type, sizeBytes: file.size };
        page.update({ files: [...page.state().files, entry] });
        sendFile(file).then(
          (ref) => {
            const isRemoved = page.state().files.every(({ key }) => key !== entry.key);
            if (isRemoved) dropFile(ref);
            else change(entry.key, { ref });
          },
          (error) => change(entry.key, { problem: error.message }),
        );
      }
    },
    remove: (key) => {
      const { files } = page.state();
      const ref = files.find((file) => file.key === key)?.ref;
      if (ref !== undefined) dropFile(ref);
      page.update({ files: files.filter((file) => file.key !== key) });
    },
  };
}

/** Returns the files as the message refers to them; undefined without any. */
export function attachmentsOf(files) {
  if (files.length === 0) return undefined;
  return files.map(({ ref, name, mimeType, sizeBytes }) => ({
    ref,
    name,
    sizeBytes,
    ...(mimeType !== '' && { mimeType }),
  }));
}

/** True when there is something to send and all files have been uploaded. An edit can't add files. */
export function canSend({ draft, files, editing }) {
  if (draft.length > maxTextLength) return false;
  if (editing !== undefined) return draft.trim() !== '';
  return (draft.trim() !== '' || files.length > 0) && files.every(({ ref }) => ref !== undefined);
}

/** The files above the composer. */
export function FileList({ files, onRemove }) {
  if (files.length === 0) return null;
  return html`<ul class="files" aria-label="Files">${files.map(
    ({ key, name, ref, problem }) => html`<li key=${key} class=${problem === undefined ? '' : 'failed'}>
      <span class="name">${name}</span> <span class="word">${problem ?? (ref === undefined ? 'sending…' : '')}</span>
      <button type="button" class="link" onClick=${() => onRemove(key)} aria-label=${`Remove ${name}`}>remove</button>
    </li>`,
  )}</ul>`;
}

/** The button that chooses files. */
export function FileButton({ onFiles }) {
  const choose = ({ target }) => {
    onFiles(target.files);
    // Lets the same file be chosen again.
    target.value = '';
  };
  return html`<label class="attach" title="Add files">
    <input type="file" multiple onChange=${choose} aria-label="Add files" />
    <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" fill="none" stroke="currentColor"
      stroke-width="1.6" stroke-linecap="round"><path
      d="m15.5 9.2-5.6 5.6a3.3 3.3 0 0 1-4.7-4.7l6-6a2.2 2.2 0 0 1 3.1 3.1l-5.7 5.7a1.1 1.1 0 0 1-1.6-1.5l5-5" /></svg>
  </label>`;
}
