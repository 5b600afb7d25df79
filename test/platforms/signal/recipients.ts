import { badRequest, type Place } from './types.ts';
import type { World } from './world.ts';

export type RecipientKind = 'group' | 'number' | 'username';

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const base64Form = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Decodes like a strict base64 reader; undefined if the text isn't base64. */
export function decodeBase64(text: string): Buffer | undefined {
  const compact = text.replace(/[\r\n]/g, '');
  return base64Form.test(compact) ? Buffer.from(compact, 'base64') : undefined;
}

/**
 * Says what the server takes a recipient for. If it is neither a doubly encoded group id nor a number nor a uuid, it is
 * a username; that includes a group's id as messages contain it.
 */
export function recipientKind(recipient: string): RecipientKind {
  if (recipient.startsWith('group.')) {
    const rest = recipient.slice(6);
    const once = decodeBase64(rest);
    if (once === undefined && rest.length <= 10) return 'username';
    const twice = once === undefined ? undefined : decodeBase64(once.toString());
    if (twice === undefined) throw badRequest(`Invalid identifier ${recipient}`);
    if (twice.length !== 32) throw badRequest(`Invalid Signal group size (${twice.length}`);
    return 'group';
  }
  if (/^\+[1-9]\d{4,14}$/.test(recipient) || uuidForm.test(recipient)) return 'number';
  return 'username';
}

/** Checks the recipients of a send: one group, or people by number and uuid, or people by username. */
export function readRecipients(recipients: readonly string[]): RecipientKind {
  const kinds = recipients.map(recipientKind);
  const has = (kind: RecipientKind) => kinds.includes(kind);
  const split = 'Please split them up into multiple REST API calls.';
  if (has('number') && has('group'))
    throw badRequest(
      `Signal Messenger Groups and phone numbers cannot be specified together in one request! ${split}`,
    );
  if (has('username') && has('group'))
    throw badRequest(
      `Signal Messenger Groups and usernames cannot be specified together in one request! ${split}`,
    );
  if (has('number') && has('username'))
    throw badRequest(
      `Signal Messenger phone numbers and usernames cannot be specified together in one request! ${split}`,
    );
  if (kinds.filter((kind) => kind === 'group').length > 1)
    throw badRequest(
      'A signal message cannot be sent to more than one group at once! Please use multiple REST API calls for that.',
    );
  return kinds[0] ?? 'username';
}

/** Returns where a call with one recipient goes; undefined if nobody in this world has that id. */
export function placeOf(world: World, recipient: string): Place | undefined {
  if (recipientKind(recipient) === 'group') {
    const internalId = decodeBase64(recipient.slice(6))?.toString() ?? '';
    const group = world.group(internalId);
    if (group === undefined) throw badRequest(`Group not found: ${internalId}`);
    return { group };
  }
  const person = world.person(recipient);
  return person === undefined ? undefined : { person };
}
