import type { PressResult } from './acceptance.ts';

type AlertTraits = { readonly isLasting: boolean; readonly avoids?: 'account' | 'conversation' };

/**
 * Notices to the owner, in one direct message and on the page. The subject identifies a notice: two alerts of the same
 * kind and subject are one alert.
 */
const kinds = {
  /** Subject: the channel. Down for longer than a minute. */
  'channel-down': { isLasting: true, avoids: 'account' },
  /** Subject: the channel. The network refuses the credentials. */
  'channel-unauthorised': { isLasting: true, avoids: 'account' },
  /** Subject: the channel. The network wants a captcha solved. */
  'channel-challenge': { isLasting: true, avoids: 'account' },
  /** Subject: the provider. It rejects the keys used. */
  'model-key': { isLasting: true },
  /** Subject: the provider and its model. It supports no tools, and is called without them. */
  'model-without-tools': { isLasting: false },
  /** Subject: the provider and its model. A refusal named a smaller window than is configured or known. */
  'model-window': { isLasting: false },
  /** Subject: the provider and its model. It names a change of the prompt that there wasn't as the reason of a cache miss. */
  'model-cache': { isLasting: false },
  /** Subject: the agent. Its instructions and tools leave conversations no room in the model's window. */
  'context-full': { isLasting: false },
  /** Subject: the session key of the lane. Something is waiting in it and nothing runs it. */
  'lane-stuck': { isLasting: true },
  /** Subject: the lane, the conversation or the part of the sweep that failed ten times in a row. */
  'part-failing': { isLasting: false },
  /** Subject: the plugin or script, and the hook. It failed five times in a row and is no longer called. */
  'hook-suspended': { isLasting: false },
  /** Subject: the group's conversation. A run failed there, and people only see a reaction. */
  'run-failed': { isLasting: false },
  /** Subject: the conversation. A message sent there may or may not have arrived. */
  'delivery-unknown': { isLasting: false, avoids: 'conversation' },
  /** Subject: the conversation. A message for it couldn't be delivered for so long that it was given up. */
  'delivery-expired': { isLasting: false, avoids: 'conversation' },
  /** Subject: the conversation. Its platform asks for a wait of more than five minutes before the next send. */
  'delivery-waits': { isLasting: true, avoids: 'conversation' },
  /** Subject: the bot account or the conversation. Messages may have been missed for good. */
  'events-missed': { isLasting: false },
  /** Subject: the conversation, under its earlier id. It continues under a different one. */
  'conversation-moved': { isLasting: false, avoids: 'conversation' },
  /** Subject: the budget's key. It has no room for a call. */
  'budget-spent': { isLasting: false },
  /** Subject: the conversation. The bot was blocked or removed. */
  'conversation-unreachable': { isLasting: true, avoids: 'conversation' },
} as const satisfies Readonly<Record<string, AlertTraits>>;

/** Kind of a notice to the owner. */
export type AlertKind = keyof typeof kinds;

/** Says whether this version knows the kind; a stored one may come from a later version. */
export function isAlertKind(kind: string): kind is AlertKind {
  return Object.hasOwn(kinds, kind);
}

/** Whether the alert is a state that ends on its own, such as a down channel; others are events, which are counted. */
export function isLasting(kind: AlertKind): boolean {
  return kinds[kind].isLasting;
}

/** Returns where a notice can't be sent: through the account, or in the conversation, that is its subject. */
export function avoidedPlace(kind: AlertKind): AlertTraits['avoids'] {
  const traits: AlertTraits = kinds[kind];
  return traits.avoids;
}

/** A condition the owner must know. */
export type Alert = {
  readonly kind: AlertKind;
  readonly subject: string;
  /** Values for the notice's text, for example `reason`, with its `code` if it has one. Contains no secret. */
  readonly values?: Readonly<Record<string, string>>;
};

/** An alert as shown by the page and the command line. */
export type ShownAlert = {
  readonly id: string;
  readonly kind: AlertKind;
  readonly text: string;
  /** How often it has happened since the alert was opened. */
  readonly count: number;
  /** When it happened first and last, ms since the epoch. */
  readonly since: number;
  readonly lastAt: number;
};

/** A question to the owner as the page shows it. */
export type ShownQuestion = {
  readonly id: string;
  readonly text: string;
  /** When it was asked, ms since the epoch. */
  readonly since: number;
  readonly choices: readonly { readonly verdict: 'approve' | 'always' | 'deny'; readonly label: string }[];
};

/** The result of an answer, with a text for people. */
export type AnswerResult = { readonly result: PressResult; readonly text: string };
