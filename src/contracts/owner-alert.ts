/**
 * A notice to the owner, by one direct message and on the page. The subject says which one: two troubles of one
 * kind and subject are the same trouble.
 */
export type AlertKind =
  /** Subject: the channel. Down for longer than a minute. */
  | 'channel-down'
  /** Subject: the channel. The network refuses the credentials. */
  | 'channel-unauthorised'
  /** Subject: the channel. The network wants a captcha solved. */
  | 'channel-challenge'
  /** Subject: the provider. It refuses the keys that it is called with. */
  | 'model-key'
  /** Subject: the provider and its model. It takes no tools, and is asked without. */
  | 'model-without-tools'
  /** Subject: the agent. Its instructions and tools leave conversations no room in the model's window. */
  | 'context-full'
  /** Subject: the session key of the lane. Something waits in it and nobody works on it. */
  | 'lane-stuck'
  /** Subject: the group's conversation. A run failed there, and people see a reaction only. */
  | 'run-failed'
  /** Subject: the conversation. What was sent there may or may not have arrived. */
  | 'delivery-unknown'
  /** Subject: the conversation. Its platform asks to wait for more than five minutes before anything is sent there. */
  | 'delivery-waits'
  /** Subject: the bot account or the conversation. Messages may have been missed for good. */
  | 'events-missed'
  /** Subject: the conversation, under its earlier id. It lives on under another one. */
  | 'conversation-moved'
  /** Subject: the budget's key. It has no room for a call. */
  | 'budget-spent'
  /** Subject: the conversation. The bot was blocked or removed. */
  | 'conversation-unreachable';

/** A state that ends by itself, such as a channel that is down; the others are events, which are counted. */
export function isLasting(kind: AlertKind): boolean {
  switch (kind) {
    case 'channel-down':
    case 'channel-unauthorised':
    case 'channel-challenge':
    case 'model-key':
    case 'lane-stuck':
    case 'delivery-waits':
    case 'conversation-unreachable':
      return true;
    case 'model-without-tools':
    case 'context-full':
    case 'run-failed':
    case 'delivery-unknown':
    case 'events-missed':
    case 'conversation-moved':
    case 'budget-spent':
      return false;
    default:
      return kind satisfies never;
  }
}

/** A condition the owner must know. */
export type Alert = {
  readonly kind: AlertKind;
  readonly subject: string;
  /** Values for the notice's text, for example `reason`, with its `code` where it has one. Holds no secret. */
  readonly values?: Readonly<Record<string, string>>;
};

/** A notice as the page and the command line show it. */
export type ShownAlert = {
  readonly id: string;
  readonly kind: AlertKind;
  readonly text: string;
  /** How often it has happened since the notice was opened. */
  readonly count: number;
  /** When it happened first and last, ms since the epoch. */
  readonly since: number;
  readonly lastAt: number;
};
