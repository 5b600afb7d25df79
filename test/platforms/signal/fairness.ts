import { findRoute } from './routes.ts';
import type { SignalServer } from './server.ts';
import { misfits, misfitsOf, operationOf } from './swagger.ts';
import type { Call, Notification } from './types.ts';

/**
 * Returns what doesn't match the project's own document in everything that this server has answered, accepted and
 * delivered. The exceptions are those named in swagger.ts.
 */
export function againstSwagger(server: SignalServer): readonly string[] {
  return [
    ...server.calls.filter(({ status }) => status !== 0 && status !== 101).flatMap(callAgainst),
    ...server.notifications.flatMap(notificationAgainst),
  ];
}

function callAgainst(call: Call): readonly string[] {
  const what = `${call.method} ${call.path} ${call.status}`;
  const path = call.path.startsWith('/v1/receive/') ? '/v1/receive/{number}' : pathOf(call);
  if (path === undefined || call.fault === 'page') return [];
  const { body, responses } = operationOf(call.method, path);
  const isAccepted = call.status < 300;
  const asked = isAccepted && body !== undefined ? misfitsOf(call.body, body) : [];
  return [...asked, ...answerAgainst(call, path, responses[String(call.status)])].map(
    (misfit) => `${what}: ${misfit}`,
  );
}

function answerAgainst(
  call: Call,
  path: string,
  schema: Parameters<typeof misfitsOf>[1] | undefined,
): readonly string[] {
  if (call.answer === '') return [];
  if (call.status >= 400) return errorAgainst(call);
  if (schema === undefined) return ['the document has no such answer'];
  if (path.startsWith('/v1/qrcodelink') && !path.endsWith('/raw')) return [];
  if (path.startsWith('/v1/attachments/')) return [];
  const answer = JSON.parse(call.answer) as unknown;
  if (path === '/v1/receive/{number}') return misfitsOf(answer, { type: 'array', items: schema }, true);
  if (path === '/v2/send' && Array.isArray(answer)) return answer.flatMap(sentAgainst);
  return misfitsOf(call.query.expand === 'true' ? narrowed(answer) : answer, schema);
}

function errorAgainst(call: Call): readonly string[] {
  if (call.status === 404 && !call.answer.startsWith('{')) return [];
  const answer = JSON.parse(call.answer.replace(/^Bad Request\n/, '')) as unknown;
  return misfits(answer, call.status === 429 ? 'api.SendMessageError' : 'api.Error');
}

function sentAgainst(entry: unknown): readonly string[] {
  const { errors, ...rest } = entry as { readonly errors?: { readonly recipients: readonly unknown[] } };
  const items = { type: 'object', properties: { number: text, uuid: text, reason: text } };
  return [
    ...misfits(rest, 'api.SendMessageResponse'),
    ...misfitsOf(errors?.recipients ?? [], { type: 'array', items }),
  ];
}

const text = { type: 'string' } as const;

/** Empties the expanded members and administrators, which the document describes as strings. */
function narrowed(answer: unknown): unknown {
  const one = (group: Record<string, unknown>) => ({ ...group, members: [], admins: [] });
  return Array.isArray(answer) ? answer.map(one) : one(answer as Record<string, unknown>);
}

function notificationAgainst({ envelope, account }: Notification): readonly string[] {
  if (envelope === undefined) return [];
  return misfits({ envelope, account }, 'data.Message', true);
}

function pathOf({ method, path }: Call): string | undefined {
  const escaped = path.split('/').map(encodeURIComponent).join('/');
  return findRoute(method, escaped)?.route.path.replace(/:(\w+)/g, '{$1}');
}
