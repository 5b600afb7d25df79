/** The few HTTP calls of the page. The header is one that a page of another origin cannot send. */
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
  const { notices, questions } = await read('/api/notices');
  return { notices, questions };
}

/** Resolves with what came of it, as text: of several answers to a question the first one counts. Rejects on failure. */
export async function answerQuestion(id, verdict) {
  return (await change('/api/notices/answer', { id, verdict })).text;
}

/** Rejects when Parley is unreachable; a notice that has ended meanwhile is dismissed already. */
export async function dismissNotice(id) {
  await post('/api/notices/dismiss', { id });
}

/** Resolves with what became of a message, as text. Rejects on failure. */
export async function fetchWhy(id) {
  return (await read(`/api/why?id=${encodeURIComponent(id)}`)).text;
}

/** Resolves with the messages that are not delivered, newest first. Rejects on failure. */
export async function fetchUndelivered() {
  return (await read('/api/outbox')).parts;
}

/** `action`: `retry` or `drop`. Rejects when it didn't work. */
export async function changeUndelivered(action, key) {
  await change(`/api/outbox/${action}`, { key });
}

/** Resolves with the chat commands: { name, description, argument? }. Rejects on failure. */
export async function fetchCommands() {
  return (await read('/api/commands')).commands;
}

/** Resolves with the id that a message names the file by. Rejects with a sentence for the person. */
export async function sendFile(file) {
  const headers = { ...changeHeaders, 'content-type': 'application/octet-stream' };
  const answer = await fetch('/uploads/web', { method: 'POST', headers, body: file }).catch(() => undefined);
  if (answer?.status === 413) throw new Error('too large');
  if (answer?.status === 507) throw new Error('too many unsent files; try again in an hour');
  if (answer === undefined || !answer.ok) throw new Error('not sent; try again');
  return (await answer.json()).id;
}

/** Tells the server that no message will name the file. It is removed there later all the same if this fails. */
export function dropFile(ref) {
  post('/uploads/web/drop', { id: ref }).catch(() => undefined);
}

/** Resolves with `undefined` when it worked, else with a sentence for the person. */
export async function signIn(token) {
  const answer = await post('/api/sign-in', { token }).catch(() => undefined);
  if (answer === undefined) return "Parley isn't responding. Is it running?";
  if (answer.ok) return undefined;
  if (answer.status === 503) return "Parley can't use its database right now. Please try again in a moment.";
  if (answer.status === 429) return "That isn't the token. After too many wrong ones, please wait a minute.";
  return "That isn't the token.";
}

/** Resolves with whether this browser is signed out now. */
export async function signOut() {
  const answer = await post('/api/sign-out', {}).catch(() => undefined);
  return answer !== undefined && (answer.ok || answer.status === 401);
}

/** Resolves with the conversations, last written in first. Rejects on failure. */
export async function fetchSessions() {
  const answer = await fetch('/api/sessions', { cache: 'no-store' });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return (await answer.json()).sessions;
}

/**
 * Resolves with a page of lanes: { lanes, next?, version }. With `since`, a version, the server waits for a change, `waitMs`
 * at most. Rejects on failure.
 */
export function fetchLanes({ after, since, waitMs }, signal) {
  const asked = new URLSearchParams();
  if (after !== undefined) asked.set('after', after);
  if (since !== undefined) {
    asked.set('since', since);
    asked.set('waitMs', waitMs);
  }
  return read(`/api/lanes?${asked}`, signal);
}

/** Resolves with the whole text of a waiting message. Rejects when it waits no more. */
export async function fetchItemText(id) {
  return (await read(`/api/queue/text?id=${encodeURIComponent(id)}`)).text;
}

/**
 * `verb`: `cancel`, `promote` or `edit`. Resolves with what it has come to, as text; with `undefined` when there is no such
 * message. Rejects when it didn't work.
 */
export async function changeItem(verb, body) {
  const answer = await post(`/api/queue/${verb}`, body);
  if (answer.status === 404) return undefined;
  // It waits no more, or may not be changed so.
  if (answer.status === 409) return (await answer.json()).error.text;
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return (await answer.json()).text;
}

/** Rejects when it didn't work. */
export async function changeLaneMode(lane, mode) {
  await change('/api/lanes/mode', { lane, mode });
}

/** Resolves with the browsers that are signed in, last seen first. Rejects on failure. */
export async function fetchSignIns() {
  return (await read('/api/sign-ins')).signIns;
}

/** Rejects when it didn't work; one that has ended meanwhile is ended already. */
export async function endSignIn(id) {
  await change('/api/sign-ins/end', { id });
}

export async function endOtherSignIns() {
  await change('/api/sign-ins/end', { others: true });
}

async function read(path, signal) {
  const answer = await fetch(path, { cache: 'no-store', signal });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}

async function change(path, body) {
  const answer = await post(path, body);
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}

function post(path, body) {
  return fetch(path, { method: 'POST', headers: changeHeaders, body: JSON.stringify(body) });
}
