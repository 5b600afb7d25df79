import type { Wire } from './types.ts';

/** A refusal in the platform's words. `status` is HTTP's, `code` Discord's. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: number;
  readonly errors: Wire | undefined;

  constructor(status: number, code: number, message: string, errors?: Wire) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.errors = errors;
  }
}

const refusals = {
  unauthorized: [401, 0, '401: Unauthorized'],
  notFound: [404, 0, '404: Not Found'],
  methodNotAllowed: [405, 0, '405: Method Not Allowed'],
  noUserAgent: [403, 40333, 'internal network error'],
  unknownChannel: [404, 10003, 'Unknown Channel'],
  unknownGuild: [404, 10004, 'Unknown Guild'],
  unknownMember: [404, 10007, 'Unknown Member'],
  unknownMessage: [404, 10008, 'Unknown Message'],
  unknownUser: [404, 10013, 'Unknown User'],
  unknownEmoji: [400, 10014, 'Unknown Emoji'],
  unknownWebhook: [404, 10015, 'Unknown Webhook'],
  unknownInteraction: [404, 10062, 'Unknown interaction'],
  unknownCommand: [404, 10063, 'Unknown application command'],
  tooLarge: [413, 40005, 'Request entity too large'],
  alreadyAcknowledged: [400, 40060, 'Interaction has already been acknowledged.'],
  missingAccess: [403, 50001, 'Missing Access'],
  notInDm: [403, 50003, 'Cannot execute action on a DM channel'],
  notTheAuthor: [403, 50005, 'Cannot edit a message authored by another user'],
  emptyMessage: [400, 50006, 'Cannot send an empty message'],
  cannotMessageUser: [403, 50007, 'Cannot send messages to this user'],
  nonTextChannel: [400, 50008, 'Cannot send messages in a non-text channel'],
  missingPermissions: [403, 50013, 'Missing Permissions'],
  systemMessage: [403, 50021, 'Cannot execute action on a system message'],
  wrongChannelType: [400, 50024, 'Cannot execute action on this channel type'],
  invalidWebhookToken: [401, 50027, 'Invalid Webhook Token'],
  invalidRecipient: [400, 50033, 'Invalid Recipient(s)'],
  threadArchived: [400, 50083, 'Thread is archived'],
  voiceWithContent: [400, 50159, 'Voice messages do not support additional content.'],
  voiceWithoutAudio: [400, 50160, 'Voice messages must have a single audio attachment.'],
  voiceWithoutMetadata: [400, 50161, 'Voice messages must have supporting metadata.'],
  noVoiceHere: [400, 50173, 'You cannot send voice messages in this channel.'],
  invalidJson: [400, 50109, 'The request body contains invalid JSON.'],
  tooManyReactions: [400, 30010, 'Maximum number of reactions reached (20)'],
  noReplyWithoutHistory: [400, 160002, 'Cannot reply without permission to read message history'],
  threadExists: [400, 160004, 'A thread has already been created for this message'],
  threadLocked: [403, 160005, 'Thread is locked'],
} as const satisfies Record<string, readonly [number, number, string]>;

export function refuse(name: keyof typeof refusals): ApiError {
  const [status, code, message] = refusals[name];
  return new ApiError(status, code, message);
}

/** Collects what is wrong with a body, by field path, and refuses with all of it: 400, 50035. */
export class Form {
  readonly #tree: Record<string, unknown> = {};
  #isWrong = false;

  /** `path` looks like `embeds.0.title`. */
  add(path: string, code: string, message: string): void {
    this.#isWrong = true;
    let node = this.#tree;
    for (const step of path.split('.').filter((one) => one !== '')) {
      node[step] ??= {};
      node = node[step] as Record<string, unknown>;
    }
    const list = (node._errors ?? []) as unknown[];
    node._errors = [...list, { code, message }];
  }

  tooLong(path: string, limit: number): void {
    this.add(path, 'BASE_TYPE_MAX_LENGTH', `Must be ${limit} or fewer in length.`);
  }

  check(): void {
    if (this.#isWrong) throw new ApiError(400, 50035, 'Invalid Form Body', this.#tree);
  }
}

export function invalidForm(path: string, code: string, message: string): ApiError {
  const form = new Form();
  form.add(path, code, message);
  try {
    form.check();
  } catch (error) {
    if (error instanceof ApiError) return error;
  }
  throw new Error('test server fault: a wrong form was not refused');
}
