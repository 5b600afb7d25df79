/**
 * The page's HTTP calls, most of them to operations by their names in `src/operations/list.ts`. They carry a header that
 * a page of another origin can't send.
 */
const changeHeaders = { 'content-type': 'application/json', 'x-parley': '1' };

/** Resolves with the status, or `undefined` when nobody is signed in. Rejects when Parley is unreachable. */
export async function fetchStatus() {
  const answer = await fetch('/api/status', { cache: 'no-store' });
  if (answer.status === 401) return undefined;
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}

/** Resolves with the owner's notices and questions, newest first. Rejects when Parley is unreachable. */
export async function fetchNotices() {
  const { notices, questions } = await read('notices');
  return { notices, questions };
}

/** Resolves with the result as text; the first of several answers to a question counts. Rejects on failure. */
export async function answerQuestion(id, verdict) {
  return (await change('notices/answer', { id, verdict })).text;
}

/** Rejects when Parley is unreachable; a notice that has ended meanwhile counts as dismissed. */
export async function dismissNotice(id) {
  await post('notices/dismiss', { id });
}

/** Resolves with a message's trace, as text. Rejects on failure. */
export async function fetchWhy(id) {
  return (await read('why', { id })).text;
}

/** Resolves with the undelivered messages, newest first. Rejects on failure. */
export async function fetchUndelivered() {
  return (await read('outbox')).parts;
}

/** Retries or drops a message; `action`: `retry` or `drop`. Rejects on failure. */
export async function changeUndelivered(action, key) {
  await change(`outbox/${action}`, { key });
}

/** Resolves with the chat commands: { name, description, argument? }. Rejects on failure. */
export async function fetchCommands() {
  return (await read('commands')).commands;
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
  send('/uploads/web/drop', { id: ref }).catch(() => undefined);
}

/** Resolves with `undefined` if it worked, otherwise with a text for the person. */
export async function signIn(token) {
  const answer = await post('sign-in', { token }).catch(() => undefined);
  if (answer === undefined) return "Parley isn't responding. Is it running?";
  if (answer.ok) return undefined;
  if (answer.status === 503) return "Parley can't use its database right now. Please try again in a moment.";
  if (answer.status === 429)
    return "That isn't the token. Too many attempts were wrong, so please wait a minute.";
  return "That isn't the token.";
}

/** Resolves with true if this browser is now signed out. */
export async function signOut() {
  const answer = await post('sign-out', {}).catch(() => undefined);
  return answer !== undefined && (answer.ok || answer.status === 401);
}

/** Resolves with the conversations, most recently used first. Rejects on failure. */
export async function fetchSessions() {
  return (await read('sessions')).sessions;
}

/**
 * Resolves with a page of lanes: { lanes, next?, version }. With `since`, a version, the server waits for a change, for
 * `waitMs` at most. Rejects on failure.
 */
export function fetchLanes({ after, since, waitMs }, signal) {
  return read('lanes', { ...(after && { after }), ...(since !== undefined && { since, waitMs }) }, signal);
}

/** Resolves with the complete text of a waiting message. Rejects once it is no longer waiting. */
export async function fetchItemText(id) {
  return (await read('queue/text', { id })).text;
}

/**
 * Changes a waiting message; `verb`: `cancel`, `promote` or `edit`. Resolves with the result as text, or with
 * `undefined` if there is no such message. Rejects on failure.
 */
export async function changeItem(verb, body) {
  const answer = await post(`queue/${verb}`, body);
  if (answer.status === 404) return undefined;
  // It is no longer waiting, or this change isn't allowed.
  if (answer.status === 409) return (await answer.json()).error.text;
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return (await answer.json()).text;
}

/** Rejects on failure. */
export async function changeLaneMode(lane, mode) {
  await change('lanes/mode', { lane, mode });
}

/** Resolves with the signed-in browsers, most recently seen first. Rejects on failure. */
export async function fetchSignIns() {
  return (await read('sign-ins')).signIns;
}

/** Ends a sign-in; succeeds if it has already ended. Rejects on failure. */
export async function endSignIn(id) {
  await change('sign-ins/end', { id });
}

export async function endOtherSignIns() {
  await change('sign-ins/end', { others: true });
}

async function read(name, input = {}, signal = undefined) {
  const query = new URLSearchParams(input);
  const path = query.size === 0 ? name : `${name}?${query}`;
  const answer = await fetch(`/api/${path}`, { cache: 'no-store', signal });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}

async function change(name, body) {
  const answer = await post(name, body);
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}

function post(name, body) {
  return send(`/api/${name}`, body);
}

function send(path, body) {
  return fetch(path, { method: 'POST', headers: changeHeaders, body: JSON.stringify(body) });
}
