/**
 * The page's HTTP calls. Operations are called by the names that `src/operations` gives them; the server writes
 * operations.js from the same list.
 */
import { methods } from '/page/operations.js';

/** The first header is one that a page of another origin can't send. */
const changeHeaders = { 'x-parley': '1', 'content-type': 'application/json' };

/**
 * Runs an operation and resolves with its answer. Rejects if Parley is unreachable or refuses; then the error has the
 * HTTP `status`, and a `text` for the person if there is one. `signal` ends the waiting.
 */
export async function call(name, input = {}, signal = undefined) {
  const answer = await send(methods[name], `/api/${name}`, input, signal);
  if (answer.ok) return answer.json();
  const { status } = answer;
  const text = await answer.json().then(
    ({ error }) => error.text,
    () => undefined,
  );
  throw Object.assign(new Error(`${name}: status ${status}`), { status, text });
}

/** Resolves with the status, or `undefined` when nobody is signed in. Rejects when Parley is unreachable. */
export function fetchStatus() {
  return call('status').catch((error) => {
    if (error.status !== 401) throw error;
  });
}

/** Uploads a file. Resolves with the id by which a message refers to it. Rejects with a text for the person. */
export async function sendFile(file) {
  const headers = { ...changeHeaders, 'content-type': 'application/octet-stream' };
  const answer = await fetch('/uploads/web', { method: 'POST', headers, body: file }).catch(() => undefined);
  if (answer?.status === 413) throw new Error('too large');
  if (answer?.status === 507) throw new Error('too many unsent files; try again in an hour');
  if (answer === undefined || !answer.ok) throw new Error('not sent; try again');
  return (await answer.json()).id;
}

/** Tells the server that no message will refer to the file. If this fails, the server removes the file later anyway. */
export function dropFile(ref) {
  send('POST', '/uploads/web/drop', { id: ref }).catch(() => undefined);
}

/** Resolves with `undefined` if it worked, otherwise with a text for the person. */
export async function signIn(token) {
  const answer = await send('POST', '/api/sign-in', { token }).catch(() => undefined);
  if (answer === undefined) return "Parley isn't responding. Is it running?";
  if (answer.ok) return undefined;
  if (answer.status === 503) return "Parley can't use its database right now. Please try again in a moment.";
  if (answer.status === 429)
    return "That isn't the token. Too many attempts were wrong, so please wait a minute.";
  return "That isn't the token.";
}

/** Resolves with true if this browser is now signed out. */
export async function signOut() {
  const answer = await send('POST', '/api/sign-out', {}).catch(() => undefined);
  return answer !== undefined && (answer.ok || answer.status === 401);
}

/** The input is the query of a GET, without what is undefined, and the body of a POST. */
function send(method, path, input, signal) {
  if (method === 'POST')
    return fetch(path, { method, headers: changeHeaders, body: JSON.stringify(input), signal });
  const query = new URLSearchParams(Object.entries(input).filter(([, value]) => value !== undefined));
  return fetch(query.size === 0 ? path : `${path}?${query}`, { cache: 'no-store', signal });
}
